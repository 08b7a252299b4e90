/// The server's side of SOCKS version 5, up to the request of the client: CONNECT only. RFC 1928, RFC 1929.
struct SocksDecoder {
    /// The next step of the conversation.
    enum Step: Equatable {
        /// More bytes are needed.
        case incomplete
        /// Send this reply; the client continues.
        case reply([UInt8])
        /// The client asks for a tunnel to this authority.
        case request(Authority)
        /// Send this reply, if it is not empty, and end the connection.
        case refused([UInt8])
    }

    /// The reply to a request. RFC 1928 §6.
    enum Reply: UInt8 {
        case succeeded = 0
        case failed = 1
        case denied = 2
        case hostUnreachable = 4
        case connectionRefused = 5
        case commandNotSupported = 7
        case addressTypeNotSupported = 8

        /// The reply for a response to the CONNECT; `fault` is the reason of a failure.
        init(_ status: HttpStatus, _ fault: GatewayError.Fault?) {
            self =
                switch (status.code / 100, fault) {
                case (2, _): .succeeded
                // Whatever status a ware gave the refusal.
                case (_, .destinationProhibited), (_, .requestDenied): .denied
                case (_, .connectionRefused): .connectionRefused
                case (_, .dnsError), (_, .dnsTimeout), (_, .destinationUnavailable), (_, .noEndpoint),
                    (_, .proxyRefused),
                    (_, .connectionTimeout):
                    .hostUnreachable
                case (4, _): .denied
                default: .failed
                }
        }

        /// The bytes of the reply. Our own address is hidden: it is sent as 0.0.0.0:0.
        var bytes: [UInt8] { [5, rawValue, 0, 1, 0, 0, 0, 0, 0, 0] }
    }

    /// The version at the start of every message except those of RFC 1929.
    static let version: UInt8 = 5

    private enum Phase { case greeting, password, request }

    private var phase = Phase.greeting
    private let demandsPassword: Bool
    /// The user and password as the credentials of a CONNECT: the value of `Proxy-Authorization`. RFC 7617 §2.
    private(set) var proxyAuthorization: String?

    /// With `demandsPassword`, a client that offers no password is refused.
    init(demandsPassword: Bool) { self.demandsPassword = demandsPassword }

    /// Reads the next message, beginning at `position`.
    mutating func next(_ bytes: [UInt8], from position: inout Int) -> Step {
        var reader = Reader(bytes: bytes[position...])
        let step: Step? =
            switch phase {
            case .greeting: greeting(&reader)
            case .password: password(&reader)
            case .request: request(&reader)
            }
        guard let step else { return .incomplete }
        position = reader.bytes.startIndex
        return step
    }

    /// §3: version, and the methods that the client has.
    private mutating func greeting(_ reader: inout Reader) -> Step? {
        guard let version = reader.number() else { return nil }
        guard version == SocksDecoder.version else { return .refused([]) }
        guard let methods = reader.text() else { return nil }
        // If a client offers a password, its user has configured one, so it is requested.
        let method: UInt8 = methods.contains(2) ? 2 : methods.contains(0) && !demandsPassword ? 0 : 0xff
        if method == 0xff { return .refused([SocksDecoder.version, method]) }
        phase = method == 2 ? .password : .request
        return .reply([SocksDecoder.version, method])
    }

    /// RFC 1929 §2. The wares that check the request decide whether the password is correct.
    private mutating func password(_ reader: inout Reader) -> Step? {
        guard let version = reader.number() else { return nil }
        guard version == 1 else { return .refused([1, 1]) }
        guard let user = reader.text(), let password = reader.text() else { return nil }
        // A user name with a colon cannot be separated from its password. RFC 7617 §2.
        guard !user.contains(0x3a) else { return .refused([1, 1]) }
        proxyAuthorization = "Basic " + Base64.encode(Array(user) + [0x3a] + Array(password))
        phase = .request
        return .reply([1, 0])
    }

    /// §4: version, command, a reserved byte, the address by its type, the port.
    private mutating func request(_ reader: inout Reader) -> Step? {
        guard let version = reader.number(), let command = reader.number(), reader.number() != nil,
            let type = reader.number()
        else { return nil }
        guard version == SocksDecoder.version else { return .refused([]) }
        let host: String?
        switch type {
        case 1:
            guard let bytes = reader.take(4) else { return nil }
            host = bytes.map(String.init).joined(separator: ".")
        case 4:
            guard let bytes = reader.take(16) else { return nil }
            let words = [bytes.prefix(8), bytes.suffix(8)].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
            host = "[\(IPAddress(ipv6: words[0], words[1]))]"
        case 3:
            guard let bytes = reader.text() else { return nil }
            let text = String(validating: bytes, as: UTF8.self)
            host = text.map { IPAddress($0).map { $0.isIPv4 ? "\($0)" : "[\($0)]" } ?? $0 }
        default: return .refused(Reply.addressTypeNotSupported.bytes)
        }
        guard let port = reader.take(2).map({ UInt16($0[$0.startIndex]) << 8 | UInt16($0[$0.startIndex + 1]) }) else {
            return nil
        }
        guard command == 1 else { return .refused(Reply.commandNotSupported.bytes) }
        guard let host, port != 0, let authority = Authority("\(host):\(port)"), authority.port == port else {
            return .refused(Reply.failed.bytes)
        }
        return .request(authority)
    }

    /// Reads from the front; `nil` after the end.
    private struct Reader {
        var bytes: ArraySlice<UInt8>

        mutating func number() -> UInt8? { bytes.popFirst() }

        mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard bytes.count >= count else { return nil }
            defer { bytes = bytes.dropFirst(count) }
            return bytes.prefix(count)
        }

        /// A text that is preceded by its length.
        mutating func text() -> ArraySlice<UInt8>? {
            guard let count = number() else { return nil }
            return take(Int(count))
        }
    }
}
