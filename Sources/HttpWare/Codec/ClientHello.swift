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
        var scan = Scan()
        return scan.read(bytes)
    }

    /// Identifies the TLS implementation of the client and its settings, which differ between programs: from the cipher suites,
    /// extensions, groups, signature schemes and application protocols that it offers. Their order is ignored, because browsers shuffle
    /// extensions. `nil` for a malformed message.
    static func program(of bytes: [UInt8]) -> UInt64? {
        guard case .message(let message) = Scan.whole(bytes) else { return nil }
        var reader = Reader(bytes: message)
        return reader.facts()?.program
    }

    /// Parses the bytes as they arrive, each of them once.
    struct Scan {
        fileprivate enum Assembly {
            case incomplete, notTls, malformed
            /// The body of the message.
            case message(ArraySlice<UInt8>)
        }

        /// The message so far, without the heads of its records.
        private var message: [UInt8] = []
        /// The number of bytes that were parsed.
        private(set) var place = 0
        /// The number of bytes that the current record's fragment still lacks.
        private var left = 0

        init() {}

        fileprivate static func whole(_ bytes: [UInt8]) -> Assembly {
            var scan = Scan()
            return scan.assemble(bytes)
        }

        /// Continues with all the bytes that the client has sent so far.
        mutating func read(_ bytes: [UInt8]) -> Reading {
            switch assemble(bytes) {
            case .incomplete: return .incomplete
            case .notTls: return .notTls
            case .malformed: return .whole(serverName: nil)
            case .message(let message):
                var reader = Reader(bytes: message)
                return .whole(serverName: reader.facts()?.name)
            }
        }

        private mutating func assemble(_ bytes: [UInt8]) -> Assembly {
            // RFC 8446 §5.1: a record has a type, a version, a length, and a fragment of a message. A message may span several
            // records.
            while true {
                if left == 0 {
                    let head = bytes[place...].prefix(5)
                    if head.count > 0, head[place] != 22 { return place == 0 ? .notTls : .malformed }
                    if head.count > 1, head[place + 1] != 3 { return place == 0 ? .notTls : .malformed }
                    guard head.count == 5 else { return .incomplete }
                    let length = Int(head[place + 3]) << 8 | Int(head[place + 4])
                    guard (1...16384).contains(length) else { return place == 0 ? .notTls : .malformed }
                    place += 5
                    left = length
                }
                let fragment = bytes[place...].prefix(left)
                message += fragment
                place += fragment.count
                left -= fragment.count
                if let first = message.first, first != 1 { return .notTls }
                if message.count >= 4 {
                    let size = Int(message[1]) << 16 | Int(message[2]) << 8 | Int(message[3])
                    if size > longest { return .malformed }
                    if message.count >= 4 + size { return .message(message[4..<(4 + size)]) }
                }
                guard left == 0 else { return .incomplete }
            }
        }
    }

    /// Reads the fields of the message in order; `nil` after its end.
    private struct Reader {
        var bytes: ArraySlice<UInt8>

        /// The facts of the message; `nil` if it is malformed.
        mutating func facts() -> (name: String?, program: UInt64)? {
            var hash = StableHash()
            guard let version = number(2), skip(32), let session = vector(1), session.count <= 32,
                let suites = vector(2), !suites.isEmpty, suites.count % 2 == 0, let methods = vector(1),
                !methods.isEmpty
            else { return nil }
            hash.add(version)
            hash.add(Reader.numbers(suites).sorted())
            var found: String?
            var types: [Int] = []
            var details: [(type: Int, values: [Int])] = []
            // TLS 1.2 allows a message without extensions. RFC 5246 §7.4.1.2.
            if !bytes.isEmpty {
                guard var extensions = vector(2).map(Reader.init), bytes.isEmpty else { return nil }
                while !extensions.bytes.isEmpty {
                    guard let type = extensions.number(2), let data = extensions.vector(2) else { return nil }
                    switch type {
                    case 0:
                        var list = Reader(bytes: data)
                        guard let names = list.vector(2), list.bytes.isEmpty else { return nil }
                        var entry = Reader(bytes: names)
                        guard entry.number(1) == 0, let name = entry.vector(2) else { return nil }
                        found = Reader.host(name)
                    // Supported groups, signature schemes (behind the length of their list), application protocols.
                    case 10, 13: details.append((type, Reader.numbers(data.dropFirst(2)).sorted()))
                    case 16: details.append((type, data.map(Int.init)))
                    default: break
                    }
                    // Those that depend on the host, on an earlier session or on the length of the message say nothing about the
                    // program: server_name, padding, pre_shared_key, early_data, cookie; nor do reserved numbers, which change
                    // (RFC 8701).
                    if ![0, 21, 41, 42, 44].contains(type), !Reader.isReserved(type) { types.append(type) }
                }
            }
            hash.add(types.sorted())
            for detail in details.sorted(by: { $0.type < $1.type }) { hash.add([detail.type] + detail.values) }
            return (found, hash.value)
        }

        /// The numbers of two bytes in a list, without reserved ones. RFC 8701.
        private static func numbers(_ list: ArraySlice<UInt8>) -> [Int] {
            var reader = Reader(bytes: list)
            var numbers: [Int] = []
            while let number = reader.number(2) { if !isReserved(number) { numbers.append(number) } }
            return numbers
        }

        private static func isReserved(_ number: Int) -> Bool {
            number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
        }

        /// A DNS name in lower case; `nil` for an address (RFC 6066 §3), and for any other text that is no name of one host.
        private static func host(_ name: ArraySlice<UInt8>) -> String? {
            guard (1...255).contains(name.count) else { return nil }
            let parsed = Array(name).withUnsafeBufferPointer { bytes in
                Authority.parse(bytes).flatMap {
                    $0.port == nil ? String(decoding: bytes[$0.host], as: UTF8.self) : nil
                }
            }
            guard let host = parsed?.lowercased(), !name.contains(0x3a), Authority.isServerName(host) else {
                return nil
            }
            return host
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

extension StableHash {
    fileprivate mutating func add(_ number: Int) {
        add(UInt8(truncatingIfNeeded: number >> 8))
        add(UInt8(truncatingIfNeeded: number))
    }

    /// Adds a list with its length, so that two lists are not mistaken for one.
    fileprivate mutating func add(_ numbers: [Int]) {
        add(numbers.count)
        for number in numbers { add(number) }
    }
}
