import Capturing
import HttpWare

/// Filters as people write them, and messages that peers send inside exchanges that are captured.
extension Fuzzing {
    /// A filter that can be read is the same when it is read again, evaluates on exchanges of each kind, and its negation says
    /// the opposite. An unreadable one has a fault inside the text or right behind it.
    public static func captureFilter(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let text = text(wire)
        do throws(FilterFault) {
            let filter = try CaptureFilter(text)
            for need in filter.needs { require((1...text.count).contains(need.column), "a need at \(need.column)") }
            let negation = try? CaptureFilter("!(\(text))")
            for phase in [nil] + CapturePhase.allCases {
                for exchange in exchanges {
                    let outcome = filter.outcome(exchange, at: phase)
                    guard choice & 1 == 0, let negation, outcome != .limitReached else { continue }
                    let opposite = negation.outcome(exchange, at: phase)
                    let expected: CaptureFilter.Outcome =
                        outcome == .matches ? .differs : outcome == .differs ? .matches : .undecided
                    require(opposite == expected || opposite == .limitReached, "\(text) and its negation agree")
                }
            }
            for isPostware in [false, true] {
                do throws(FilterFault) {
                    _ = try filter.condition(isPostware: isPostware)
                } catch {
                    require((1...text.count + 1).contains(error.column), "\(error) in \(text)")
                }
                _ = try? FilterGate(filter, isPostware: isPostware)
            }
            if filter.need(beyond: .requestHead) == nil {
                for exchange in exchanges {
                    require(filter.outcome(exchange, at: .requestHead) != .undecided, "\(text) is undecided")
                }
            }
        } catch {
            require((1...text.count + 1).contains(error.column), "\(error) in \(text)")
        }
    }

    private static let exchanges: [CapturedExchange] = {
        var request = CapturedMessage(fields: [.init("Host", "a.test"), .init("Content-Type", "application/json")])
        request.content.kept = Array("{\"name\":\"value\"}".utf8)
        request.content.size = request.content.kept.count
        let open = CapturedExchange(
            id: 1, started: WallTime(seconds: 0), method: "POST", url: "https://a.test:8443/path?q=1",
            version: "HTTP/2",
            listener: "main", request: request)
        var ended = open
        ended.isOpen = false
        ended.status = 200
        ended.kind = .websocket
        ended.response = CapturedMessage(fields: [.init("Content-Encoding", "gzip"), .init("Content-Type", "text/css")])
        ended.response?.content.kept = [0x1f, 0x8b, 8, 0, 0, 0]
        ended.response?.content.size = 100
        ended.duration = 5_000_000
        ended.comment = "two\nlines"
        ended.messages = [
            CapturedPiece(.send, .webSocket(opcode: 1), time: WallTime(seconds: 0), data: Array("hi".utf8), size: 2)
        ]
        return [open, ended]
    }()

    /// Messages come out the same whole and in pieces, and no more of one is kept than was asked for.
    public static func capturedMessages(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let limit = choice & 0x80 == 0 ? 1 << 16 : 5
        switch choice & 0x07 {
        case 0, 1, 2:
            let extensions = ["", "permessage-deflate", "permessage-deflate; server_no_context_takeover"][choice & 3]
            compare(wire, limit) {
                var response = CapturedMessage(fields: [.init("Sec-WebSocket-Extensions", extensions)])
                response.trailers = []
                return MessageReader(webSocket: choice & 0x08 == 0 ? .receive : .send, response: response, limit: limit)
            }
        case 3, 4:
            compare(wire, limit) {
                MessageReader(
                    content: .receive,
                    of: CapturedMessage(fields: [
                        .init("Content-Type", choice & 7 == 3 ? "text/event-stream" : "application/grpc"),
                        .init("grpc-encoding", "gzip"),
                    ]), limit: limit)
            }
        case 5:
            for field in ProtobufField.read(wire) ?? [] { require(!field.json.text.isEmpty, "a field without JSON") }
        case 6:
            for type in ["application/json", "application/graphql", "multipart/form-data; boundary=x"] {
                let names = GraphQLOperations.names(
                    method: "POST", url: "https://a.test/graphql", mediaType: type, content: wire)
                require(Set(names).count == names.count && !names.contains(""), "\(names)")
            }
            _ = GraphQLOperations.names(method: "GET", url: "/?" + text(wire), mediaType: nil, content: [])
            var reader = MultipartReader(wire, boundary: MultipartReader.boundary(in: wire) ?? [0x62])
            var end = 0
            while let part = reader.next() {
                require(part.content.lowerBound > end && !part.content.isEmpty, "parts overlap")
                end = part.content.upperBound
            }
        default: archive(wire)
        }
    }

    private static func compare(_ wire: [UInt8], _ limit: Int, _ make: () -> MessageReader?) {
        func read(_ size: Int) -> [CapturedPiece] {
            guard var reader = make() else { fatalError("there is no reader") }
            return stride(from: 0, to: wire.count, by: size).flatMap { start in
                Array(wire[start..<min(start + size, wire.count)]).withUnsafeBytes {
                    reader.read($0, at: WallTime(seconds: 0))
                }
            }
        }
        let whole = read(max(wire.count, 1))
        let pieces = read(1)
        require(whole == pieces, "\(whole) and \(pieces)")
        for piece in whole {
            require(piece.data.count <= max(limit, 125) && piece.data.count <= piece.size, "too much is kept")
        }
    }

    /// An archive that can be read is written so that it reads as the same exchanges.
    private static func archive(_ wire: [UInt8]) {
        guard let reader = try? HarReader(wire) else { return }
        var writer = HarWriter(version: "1")
        var bytes = writer.begin()
        for exchange in reader.exchanges { bytes += writer.entry(exchange) }
        bytes += writer.end()
        let written = reader.exchanges.filter { HarWriter.entryAlone($0) != nil }
        guard let again = try? HarReader(bytes) else { fatalError("our archive is refused") }
        require(again.exchanges.count == written.count && again.leftOut == writer.leftOut, "entries are lost")
        for (left, right) in zip(written, again.exchanges) {
            require(
                left.url == right.url && left.status == right.status && left.method == right.method, "another request")
            let kept = (left.response?.content.kept ?? [], right.response?.content.kept ?? [])
            require(kept.0 == kept.1 || left.response?.content.kept.isEmpty ?? true, "other content")
        }
    }
}
