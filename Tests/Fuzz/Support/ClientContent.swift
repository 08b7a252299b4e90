import Capturing
@testable import HttpWareClient
import HttpWareTesting
import GatewayWares

/// Content that a client reads: the content of responses as lines, events and values, ranges of files, recorded exchanges.
extension Fuzzing {
    /// The content comes out the same whole and in pieces, as another reading of it has it.
    public static func eventStream(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let ends: LineSplitter.Ends = choice & 1 == 0 ? .any : .lineFeed
        let limit = choice & 2 == 0 ? 1 << 20 : 20
        let whole = lines(wire, wire.count, ends, limit)
        let pieces = lines(wire, choice >> 2 % 7 + 1, ends, limit)
        require(whole.lines == pieces.lines && whole.isTooLong == pieces.isTooLong, "\(whole) and \(pieces)")
        if limit > wire.count { require(whole.lines == plainLines(wire, ends), "\(whole) of \(text(wire))") }

        var parser = ServerEventParser()
        for line in whole.lines {
            if let event = parser.takeLine(line) {
                require(!event.type.isEmpty, "an event without a type")
                require(!event.id.unicodeScalars.contains("\0"), "an id with NUL")
                require(parser.size == 0, "data is left behind an event")
            }
            require(parser.size <= wire.count * 3, "more data than came")
            value(Array(line.utf8))
        }
    }

    private static func lines(
        _ wire: [UInt8], _ size: Int, _ ends: LineSplitter.Ends, _ limit: Int
    ) -> (lines: [String], isTooLong: Bool) {
        var splitter = LineSplitter(ends, limit: limit)
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
    private static func plainLines(_ wire: [UInt8], _ ends: LineSplitter.Ends) -> [String] {
        var lines: [String] = []
        var line: [UInt8] = []
        var index = 0
        while index < wire.count {
            let isPair = wire[index] == 0x0d && index + 1 < wire.count && wire[index + 1] == 0x0a
            if wire[index] == 0x0a || isPair || wire[index] == 0x0d && ends == .any {
                lines.append(text(line))
                line = []
                index += isPair ? 2 : 1
            } else {
                line.append(wire[index])
                index += 1
            }
        }
        return line.isEmpty ? lines : lines + [text(line)]
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
