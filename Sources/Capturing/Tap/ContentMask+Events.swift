/// Masks the data of server-sent events. The data lines of an event form one text, and lines without a known field another
/// one. HTML Standard §9.2.6.
extension ContentMask {
    static func eventMarks(in bytes: [UInt8]) -> [Mark] {
        var marks: [Mark] = []
        var data = EventData()
        var other = EventData()
        var at = 0
        while at < bytes.count {
            let end = bytes[at...].firstIndex { $0 == 0x0a || $0 == 0x0d } ?? bytes.count
            let isEmpty = at == end
            // A byte order mark does not belong to the first line. Removing it from other lines is harmless.
            if bytes[at..<end].starts(with: [0xef, 0xbb, 0xbf]) { at += 3 }
            let line = bytes[at..<end]
            if isEmpty {
                EventData.take(&data, &other, &marks)
            } else if line.starts(with: [0x64, 0x61, 0x74, 0x61, 0x3a]) {
                let start = at + 5
                data.add(bytes[(start < end && bytes[start] == 0x20 ? start + 1 : start)..<end])
            } else if !isField(line) {
                other.add(line)
            }
            at = end + 1
            // A line feed after a carriage return belongs to the same line end.
            if at < bytes.count, bytes[at] == 0x0a, bytes[at - 1] == 0x0d { at += 1 }
        }
        EventData.take(&data, &other, &marks)
        return marks
    }

    /// Whether a line is a comment, or has a field other than data.
    private static func isField(_ line: ArraySlice<UInt8>) -> Bool {
        [":", "event:", "id:", "retry:"].contains { line.starts(with: $0.utf8) }
    }

    /// The start of the last event that is still incomplete. The content before it no longer changes.
    static func endOfEvents(in bytes: [UInt8], from start: Int) -> Int {
        var end = bytes.count
        while end > start + 1 {
            end -= 1
            let (before, last) = (bytes[end - 1], bytes[end])
            if last == 0x0a && before == 0x0a || last == 0x0d && before == 0x0d { return end + 1 }
            if last == 0x0a, before == 0x0d, end - start >= 2, bytes[end - 2] == 0x0a { return end + 1 }
        }
        return start
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
        let complete = isLast ? content.count : ContentMask.endOfEvents(in: content, from: end)
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
