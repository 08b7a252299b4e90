import HttpWare

/// Masks the data of server-sent events. The data lines of an event form one text, and lines without a known field another
/// one. HTML Standard §9.2.6.
extension ContentMask {
    static func eventMarks(in bytes: [UInt8]) -> [Mark] {
        var marks: [Mark] = []
        var data = EventData()
        var other = EventData()
        var lines = EventLines()
        var at = 0
        while let (text, _) = bytes.withUnsafeBytes({ lines.next(in: $0, from: &at) }) {
            guard !text.isEmpty else {
                EventData.take(&data, &other, &marks)
                continue
            }
            // A byte order mark does not belong to the first line. Removing it from other lines is harmless.
            let line = bytes[text].starts(with: EventReader.byteOrderMark) ? bytes[text].dropFirst(3) : bytes[text]
            let (field, value) = EventReader.field(line)
            switch field {
            case .data: data.add(value)
            case .unknown: other.add(line)
            case .comment, .event, .id, .retry: break
            }
        }
        EventData.take(&data, &other, &marks)
        return marks
    }
}

/// The data of one event, and the positions of its lines in the content.
private struct EventData {
    private var text: [UInt8] = []
    private var lines: [(start: Int, place: Int)] = []

    mutating func add(_ line: ArraySlice<UInt8>) {
        if !lines.isEmpty { text.append(0x0a) }
        lines.append((text.count, line.startIndex))
        text += line
    }

    /// Adds the marks of both texts of an event in the order of their places.
    static func take(_ data: inout EventData, _ other: inout EventData, _ marks: inout [ContentMask.Mark]) {
        let isMixed = !data.lines.isEmpty && !other.lines.isEmpty
        let start = marks.count
        data.take(&marks)
        other.take(&marks)
        if isMixed { marks.replaceSubrange(start..., with: ContentMask.joined(Array(marks[start...]))) }
    }

    private mutating func take(_ marks: inout [ContentMask.Mark]) {
        defer {
            text = []
            lines = []
        }
        guard !lines.isEmpty else { return }
        var line = 0
        /// The position of a byte of the text. The line feed between two lines maps to the end of the first one.
        func place(_ at: Int) -> Int {
            while line + 1 < lines.count, lines[line + 1].start <= at { line += 1 }
            return lines[line].place + at - lines[line].start
        }
        for mark in ContentMask.allMarks(in: text, .json) {
            let start = place(mark.range.lowerBound)
            let last = mark.range.upperBound - 1
            let isFeed = text[last] == 0x0a
            let end = place(last) + (isFeed ? 0 : 1)
            marks.append(ContentMask.Mark(range: start..<max(start, end), style: mark.style))
        }
    }
}

/// The content of a running response with events, masked up to the last complete event.
struct MaskedEvents {
    private(set) var masked: [UInt8] = []
    /// The end of the masked part of the content.
    private var end = 0
    /// Whether a value was masked.
    private(set) var hasMarks = false

    /// The content last shown, and the length from which it was made.
    private var shown: [UInt8] = []
    private var seen = 0

    /// An incomplete event is shown up to this length, because it is masked again on each call.
    private static let mostOpen = 16 << 10

    /// The masked content. The part of the last event may still change.
    mutating func update(_ content: [UInt8], isLast: Bool) -> [UInt8] {
        if isLast || content.count != seen { shown = updated(content, isLast: isLast) }
        seen = content.count
        return shown
    }

    private mutating func updated(_ content: [UInt8], isLast: Bool) -> [UInt8] {
        let complete = isLast ? content.count : EventReader.endOfEvents(in: content, from: end)
        if complete > end {
            let part = Array(content[end..<complete])
            let shown = ContentMask.masked(part, .events)
            hasMarks = hasMarks || shown != nil
            masked += shown ?? part
            end = complete
        }
        let open = content.count - end
        guard open > 0, open <= MaskedEvents.mostOpen else { return masked }
        let rest = Array(content[end...])
        guard let shown = ContentMask.masked(rest, .events) else { return masked + rest }
        return masked + shown
    }
}
