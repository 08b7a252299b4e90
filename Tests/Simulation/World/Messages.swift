/// The head of a message as it stands in bytes. Names of fields are in lower case.
struct Head {
    /// The three parts of the first line.
    var first: [String] = []
    var fields: [(name: String, value: String)] = []

    /// The first value of a field.
    subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

    func number(_ name: String) -> Int? { self[name].flatMap { Int($0) } }

    /// The members of a list, in lower case, with their values.
    func list(_ name: String) -> [String] {
        fields.filter { $0.name == name }.flatMap { $0.value.split(separator: ",") }.map {
            $0.drop { $0 == " " }.lowercased()
        }
    }
}

/// Reads HTTP/1.1 messages for the peers, written from RFC 9112 and not from the gateway's decoders.
struct MessageReader {
    enum Event {
        case head(Head), content([UInt8]), end(trailers: [(name: String, value: String)])
        case malformed(String)
    }

    private enum State {
        case head, length(Int), chunkSize, chunk(Int), chunkEnd, trailers, untilClose, broken
    }

    private let readsRequests: Bool
    private var bytes: [UInt8] = []
    private var state = State.head
    private var trailers: [(name: String, value: String)] = []
    /// Whether the next response has no content, whatever its fields say: one to HEAD.
    var isBodiless = false

    init(readsRequests: Bool) { self.readsRequests = readsRequests }

    /// Whether a message has begun and not ended.
    var isInMessage: Bool { if case .head = state { !bytes.isEmpty } else { true } }

    /// Whether the end of the connection ends the content.
    var endsByClose: Bool { if case .untilClose = state { true } else { false } }

    mutating func append(_ more: [UInt8]) { bytes += more }

    mutating func next() -> Event? {
        switch state {
        case .broken: return nil
        case .head:
            guard let lines = takeHead() else { return nil }
            guard let head = MessageReader.head(lines) else { return fail("a head: \(lines)") }
            return begin(head)
        case .length(let left):
            if left == 0 { return end() }
            guard !bytes.isEmpty else { return nil }
            let piece = take(min(left, bytes.count))
            state = .length(left - piece.count)
            return .content(piece)
        case .untilClose: return bytes.isEmpty ? nil : .content(take(bytes.count))
        case .chunkSize:
            guard let line = takeLine() else { return nil }
            guard let size = Int(line.prefix { $0 != ";" }, radix: 16), size >= 0 else {
                return fail("a chunk: \(line)")
            }
            state = size == 0 ? .trailers : .chunk(size)
            return next()
        case .chunk(let left):
            guard !bytes.isEmpty else { return nil }
            let piece = take(min(left, bytes.count))
            state = piece.count == left ? .chunkEnd : .chunk(left - piece.count)
            return .content(piece)
        case .chunkEnd:
            guard let line = takeLine() else { return nil }
            guard line.isEmpty else { return fail("the end of a chunk: \(line)") }
            state = .chunkSize
            return next()
        case .trailers:
            guard let line = takeLine() else { return nil }
            if line.isEmpty { return end() }
            guard let field = MessageReader.field(line) else { return fail("a trailer: \(line)") }
            trailers.append(field)
            return next()
        }
    }

    private mutating func begin(_ head: Head) -> Event {
        trailers = []
        let codings = head.list("transfer-encoding")
        let lengths = head.fields.filter { $0.name == "content-length" }.map(\.value)
        if lengths.count > 1 || !lengths.isEmpty && !codings.isEmpty {
            return fail("ambiguous framing: \(head.fields)")
        }
        if let length = lengths.first, Int(length) == nil { return fail("a length: \(length)") }
        let length = lengths.first.flatMap { Int($0) }
        if readsRequests {
            guard codings.isEmpty || codings == ["chunked"] else { return fail("a coding: \(codings)") }
            state = codings.isEmpty ? .length(length ?? 0) : .chunkSize
            return .head(head)
        }
        let status = Int(head.first[1]) ?? 0
        if (100..<200).contains(status) { return .head(head) }
        if isBodiless || status == 204 || status == 304 {
            state = .length(0)
        } else if codings.last == "chunked" {
            state = .chunkSize
        } else if let length {
            state = .length(length)
        } else {
            state = .untilClose
        }
        return .head(head)
    }

    private mutating func end() -> Event {
        state = .head
        return .end(trailers: trailers)
    }

    private mutating func fail(_ what: String) -> Event {
        state = .broken
        return .malformed(what)
    }

    private mutating func take(_ count: Int) -> [UInt8] {
        if count == bytes.count {
            defer { bytes = [] }
            return bytes
        }
        let piece = Array(bytes[..<count])
        bytes.removeFirst(count)
        return piece
    }

    private mutating func takeLine() -> String? {
        guard let end = bytes.firstIndex(of: 10), end > 0, bytes[end - 1] == 13 else { return nil }
        let line = String(decoding: bytes[..<(end - 1)], as: UTF8.self)
        bytes.removeFirst(end + 1)
        return line
    }

    private mutating func takeHead() -> [String]? {
        var index = 3
        while index < bytes.count {
            if bytes[index] == 10, bytes[index - 1] == 13, bytes[index - 2] == 10, bytes[index - 3] == 13 {
                let text = String(decoding: bytes[..<(index - 3)], as: UTF8.self)
                bytes.removeFirst(index + 1)
                return text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
            }
            index += 1
        }
        return nil
    }

    private static func head(_ lines: [String]) -> Head? {
        let first = lines[0].split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        guard first.count == 3 else { return nil }
        var head = Head(first: first)
        for line in lines.dropFirst() {
            guard let field = field(line) else { return nil }
            head.fields.append(field)
        }
        return head
    }

    private static func field(_ line: String) -> (name: String, value: String)? {
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let value = line[line.index(after: colon)...]
        return (line[..<colon].lowercased(), value.drop { $0 == " " }.description)
    }
}

/// Content that tells whose it is at each place.
enum Content {
    /// `count` bytes of the content for a request and an identity.
    static func bytes(_ request: Int, _ identity: Int, count: Int) -> [UInt8] {
        let unit = Array("\(request).\(identity);".utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + unit.count)
        while bytes.count < count { bytes += unit }
        bytes.removeLast(bytes.count - count)
        return bytes
    }

    /// As chunks of at most `most` bytes, with these lines of trailers.
    static func chunked(_ bytes: [UInt8], most: Int, trailers: String = "") -> [UInt8] {
        var coded: [UInt8] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + most)
            coded += Array("\(String(end - start, radix: 16))\r\n".utf8) + bytes[start..<end] + [13, 10]
            start = end
        }
        return coded + Array("0\r\n\(trailers)\r\n".utf8)
    }
}
