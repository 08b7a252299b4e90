/// The first message of a TLS client, parsed for the host name before it is answered. RFC 8446 §4.1.2.
enum ClientHello {
    /// The meaning of the first bytes of a connection.
    enum Reading: Equatable {
        /// More bytes are needed to know.
        case incomplete
        /// The bytes cannot come from a TLS client.
        case notTls
        /// The message is complete or malformed. With the host name in lower case, if it has a readable one. RFC 6066 §3.
        case whole(serverName: String?)
    }

    /// The maximum length of a ClientHello: with post-quantum keys it has about 2 KiB.
    static let longest = 16 * 1024

    /// Parses the bytes that a client has sent so far.
    static func read(_ bytes: [UInt8]) -> Reading {
        // RFC 8446 §5.1: a record has a type, a version, a length, and a fragment of a message. A message may span several records.
        var message: [UInt8] = []
        var place = 0
        while true {
            let head = bytes[place...].prefix(5)
            if head.count > 0, head[place] != 22 { return place == 0 ? .notTls : .whole(serverName: nil) }
            if head.count > 1, head[place + 1] != 3 { return place == 0 ? .notTls : .whole(serverName: nil) }
            guard head.count == 5 else { return .incomplete }
            let length = Int(head[place + 3]) << 8 | Int(head[place + 4])
            guard (1...16384).contains(length) else { return place == 0 ? .notTls : .whole(serverName: nil) }
            let fragment = bytes[(place + 5)...].prefix(length)
            message += fragment
            if let first = message.first, first != 1 { return .notTls }
            if message.count >= 4 {
                let size = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
                if size > longest { return .whole(serverName: nil) }
                if message.count >= 4 + size {
                    var reader = Reader(bytes: message[4..<(4 + size)])
                    return .whole(serverName: reader.serverName())
                }
            }
            guard fragment.count == length else { return .incomplete }
            place += 5 + length
        }
    }

    /// Reads the fields of the message in order; `nil` after its end.
    private struct Reader {
        var bytes: ArraySlice<UInt8>

        /// The host name; `nil` without one, or if the message is malformed.
        mutating func serverName() -> String? {
            guard skip(2 + 32), let session = vector(1), session.count <= 32, let suites = vector(2), !suites.isEmpty,
                let methods = vector(1), !methods.isEmpty
            else { return nil }
            // TLS 1.2 allows a message without extensions. RFC 5246 §7.4.1.2.
            if bytes.isEmpty { return nil }
            guard var extensions = vector(2).map(Reader.init), bytes.isEmpty else { return nil }
            var found: String?
            while !extensions.bytes.isEmpty {
                guard let type = extensions.number(2), let data = extensions.vector(2) else { return nil }
                guard type == 0 else { continue }
                var list = Reader(bytes: data)
                guard let names = list.vector(2), list.bytes.isEmpty else { return nil }
                var entry = Reader(bytes: names)
                guard entry.number(1) == 0, let name = entry.vector(2), let host = Self.host(name) else { return nil }
                found = host
            }
            return found
        }

        /// A DNS name in lower case; `nil` for an address (RFC 6066 §3), and for bytes that could be mistaken for another name.
        private static func host(_ name: ArraySlice<UInt8>) -> String? {
            guard (1...255).contains(name.count) else { return nil }
            let parsed = Array(name).withUnsafeBufferPointer { bytes in
                Authority.parse(bytes).flatMap {
                    $0.port == nil ? String(decoding: bytes[$0.host], as: UTF8.self) : nil
                }
            }
            guard let parsed, !name.contains(0x3a), IPAddress(parsed) == nil else { return nil }
            return parsed.lowercased()
        }

        private mutating func skip(_ count: Int) -> Bool {
            guard bytes.count >= count else { return false }
            bytes = bytes.dropFirst(count)
            return true
        }

        private mutating func number(_ size: Int) -> Int? {
            guard bytes.count >= size else { return nil }
            defer { bytes = bytes.dropFirst(size) }
            return bytes.prefix(size).reduce(0) { $0 << 8 | Int($1) }
        }

        /// A part of the message, preceded by its length of `size` bytes.
        private mutating func vector(_ size: Int) -> ArraySlice<UInt8>? {
            guard let count = number(size), bytes.count >= count else { return nil }
            defer { bytes = bytes.dropFirst(count) }
            return bytes.prefix(count)
        }
    }
}
