import Capturing
@testable import HttpWareClient
@testable import HttpWare
import HttpWareTesting
import GatewayWares

/// Content that a client reads: the content of responses as lines, events and values, ranges of files, recorded exchanges.
extension Fuzzing {
    /// The content comes out the same whole and in pieces, as another reading of it has it.
    public static func eventStream(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let limit = choice & 2 == 0 ? 1 << 20 : 20
        let size = Int(choice >> 2) % 7 + 1
        if choice & 1 == 0 {
            let whole = events(wire, max(wire.count, 1), limit)
            require(whole == events(wire, size, limit), "\(whole) in pieces of \(size)")
            for event in whole {
                require(event.type != "", "an event with an empty type")
                require(!(event.id ?? "").utf8.contains(0), "an id with NUL")
                require(event.data.count == min(event.size, limit) && event.size < wire.count, "\(event) of \(limit)")
                value(event.data)
            }
            if limit > wire.count { require(whole == plainEvents(wire), "\(whole) of \(text(wire))") }
            return
        }
        let whole = lines(wire, wire.count, limit)
        let pieces = lines(wire, size, limit)
        require(whole.lines == pieces.lines && whole.isTooLong == pieces.isTooLong, "\(whole) and \(pieces)")
        if limit > wire.count {
            require(whole.lines == plainLines(wire, .lineFeed).map(text), "\(whole) of \(text(wire))")
        }
        for line in whole.lines { value(Array(line.utf8)) }
    }

    private static func events(_ wire: [UInt8], _ size: Int, _ limit: Int) -> [EventReader.Event] {
        var reader = EventReader(limit: limit)
        var events: [EventReader.Event] = []
        for start in stride(from: 0, to: wire.count, by: size) {
            Array(wire[start..<min(start + size, wire.count)]).withUnsafeBytes {
                var place = 0
                while let event = reader.next(in: $0, from: &place) { events.append(event) }
            }
            require(reader.size <= wire.count, "more data than came")
        }
        return events
    }

    /// The events, of whole lines.
    private static func plainEvents(_ wire: [UInt8]) -> [EventReader.Event] {
        var events: [EventReader.Event] = []
        var (type, id): (String?, String?)
        var data: [[UInt8]] = []
        let hasMark = wire.starts(with: [0xef, 0xbb, 0xbf])
        var lines = plainLines(hasMark ? Array(wire.dropFirst(3)) : wire, .any)
        // A last line without an end is dropped, like the event that it belongs to.
        if let last = wire.last, last != 0x0a, last != 0x0d, !lines.isEmpty { lines.removeLast() }
        for line in lines {
            if line.isEmpty {
                let joined = Array(data.joined(separator: [0x0a]))
                if !data.isEmpty {
                    events.append(EventReader.Event(type: type, id: id, data: joined, size: joined.count))
                }
                (type, data) = (nil, [])
                continue
            }
            let colon = line.firstIndex(of: 0x3a) ?? line.count
            var value = Array(line.dropFirst(colon + 1))
            if value.first == 0x20 { value.removeFirst() }
            switch text(Array(line[..<colon])) {
            case "data": data.append(value)
            case "event": type = value.isEmpty ? nil : text(value)
            case "id" where !value.contains(0): id = text(value)
            default: break
            }
        }
        return events
    }

    private enum Ends { case any, lineFeed }

    private static func lines(_ wire: [UInt8], _ size: Int, _ limit: Int) -> (lines: [String], isTooLong: Bool) {
        var splitter = LineSplitter(limit: limit)
        var lines: [String] = []
        do throws(LineSplitter.TooLong) {
            for start in stride(from: 0, to: wire.count, by: max(size, 1)) {
                splitter.append(Array(wire[start..<min(start + size, wire.count)]))
                while let line = try splitter.next() { lines.append(line) }
            }
            if let rest = splitter.rest() { lines.append(rest) }
            return (lines, false)
        } catch {
            return (lines, true)
        }
    }

    /// The lines, one byte after the other.
    private static func plainLines(_ wire: [UInt8], _ ends: Ends) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var line: [UInt8] = []
        var index = 0
        while index < wire.count {
            let isPair = wire[index] == 0x0d && index + 1 < wire.count && wire[index + 1] == 0x0a
            if wire[index] == 0x0a || isPair || wire[index] == 0x0d && ends == .any {
                lines.append(line)
                line = []
                index += isPair ? 2 : 1
            } else {
                line.append(wire[index])
                index += 1
            }
        }
        return line.isEmpty ? lines : lines + [line]
    }

    private struct Item: Decodable, Sendable {
        var id: Int
        var name: String?
        var items: LossyArray<Item>?
    }

    /// A value of JSON is read, or what is wrong with it is told within bounds.
    private static func value(_ content: [UInt8]) {
        do {
            let items = try JsonCoder().decode(LossyArray<Item>.self, from: content)
            require(items.elements.count + items.skipped.count <= content.count, "more elements than bytes")
            for skipped in items.skipped { tell(skipped.error, content) }
        } catch {
            tell(error, content)
        }
    }

    private static func tell(_ error: any Error, _ content: [UInt8]) {
        let problem = DecodingProblem(error, content: content)
        require(problem.excerpt.unicodeScalars.count <= DecodingProblem.shown, "too much is shown")
        require(!problem.description.isEmpty, "nothing is told")
    }

    /// A range is taken only as it is written, and written the same again.
    public static func contentRange(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (_, wire) = input(start, count), let range = DownloadedRange(text(wire)) else { return }
        require(range.first >= 0 && range.first <= range.last, "\(range)")
        if let whole = range.whole { require(range.last < whole, "\(range)") }
        let again = "bytes \(range.first)-\(range.last)/\(range.whole.map { "\($0)" } ?? "*")"
        require(DownloadedRange(again) == range, "\(range) is not \(again)")
    }

    /// An archive that is read is written and read again: the same messages.
    public static func har(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        if let reader = try? HarReader(wire) {
            _ = Replay(reader.exchanges, missing: .fail, timing: choice & 1 == 0)
            var writer = HarWriter()
            let again = writer.begin() + reader.exchanges.flatMap { writer.entry($0) } + writer.end()
            let expected = reader.exchanges.count - writer.leftOut
            require((try? HarReader(again).exchanges.count) == expected, "entries are lost")
            let redaction = CaptureRedaction(CaptureSettings())
            for exchange in reader.exchanges {
                for message in [exchange.request, exchange.response].compactMap(\.self) {
                    require(message.fields.count <= 1000 && message.trailers.count <= 1000, "too many lines")
                }
                require(exchange.messages.count <= 10_000, "too many messages")
                let masked = redaction.masked(exchange)
                require(masked.request.content.isWhole == exchange.request.content.isWhole, "a mask cuts content")
                let sent = SentUrl.encoded(exchange.url)
                require(SentUrl.encoded(sent) == sent, "\(exchange.url.debugDescription) is encoded twice")
                _ = try? RequestRepetition(exchange)
            }
        }
        guard let archive = try? HarArchive(json: wire) else { return }
        do {
            let again = try HarArchive(json: try archive.json(hidesCredentials: false))
            require(again.entries.count == archive.entries.count, "entries are lost")
            for (first, second) in zip(archive.entries, again.entries) {
                require(first.request.method == second.request.method, "another method")
                require(first.request.receivedTarget == second.request.receivedTarget, "another target")
                require(first.response.status == second.response.status, "another status")
                // Content is written without its codings.
                guard !first.response.fields.contains(.contentEncoding) else { continue }
                require(first.response.content.bytes == second.response.content.bytes, "another content")
                require(
                    first.response.fields.map { "\($0.name): \($0.value)" }
                        == second.response.fields.map { "\($0.name): \($0.value)" }, "other fields")
            }
            _ = try archive.json()
        } catch {
            fatalError("what was read cannot be written: \(error)")
        }
    }
}
