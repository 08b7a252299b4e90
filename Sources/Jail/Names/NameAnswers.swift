import HttpWare

/// The answers to the DNS queries of a program behind a wall: each name has addresses of its own, and nothing is asked elsewhere.
struct NameAnswers: Sendable {
    let names: SyntheticNames
    /// Whether names are answered; otherwise each query is refused.
    let answers: Bool

    /// How long a program may keep an address.
    private static let seconds: UInt32 = 60
    /// Programs that resolve names over HTTPS by themselves ask for this name, and do not if it does not exist.
    private static let canary = "use-application-dns.net"

    /// The response to a message; `nil` if it gets none.
    func response(to message: [UInt8]) -> [UInt8]? {
        switch DnsQuery.read(message) {
        case .ignored: nil
        case .answered(let response): response
        case .query(let query): response(to: query)
        }
    }

    private func response(to query: DnsQuery) -> [UInt8] {
        guard answers, query.isInternet else { return query.response(.refused) }
        let name = query.name
        let isLocal = name == "localhost" || name.hasSuffix(".localhost")
        guard isLocal || NameAnswers.isHost(name), name != NameAnswers.canary else { return query.response(.noName) }
        // Other types have no records here: such as HTTPS, which would name other addresses, ports and keys.
        guard let kind = DnsQuery.Kind(rawValue: query.kind) else { return query.response(.none) }
        if isLocal {
            return query.response(
                kind == .a ? [127, 0, 0, 1] : [UInt8](repeating: 0, count: 15) + [1], seconds: NameAnswers.seconds)
        }
        let (four, six) = names.addresses(of: name)
        return query.response(NameAnswers.bytes(kind == .a ? four : six), seconds: NameAnswers.seconds)
    }

    /// Whether a host can have the name: letters, digits, hyphens and underscores, at most 253 bytes.
    private static func isHost(_ name: String) -> Bool {
        guard (1...253).contains(name.utf8.count), !name.hasSuffix(".in-addr.arpa"), !name.hasSuffix(".ip6.arpa") else {
            return false
        }
        return DirectDestination.isName(name)
    }

    private static func bytes(_ address: IPAddress) -> [UInt8] {
        if let bits = address.ipv4Bits { return withUnsafeBytes(of: bits.bigEndian) { Array($0) } }
        return withUnsafeBytes(of: address.high.bigEndian) { Array($0) }
            + withUnsafeBytes(of: address.low.bigEndian) { Array($0) }
    }
}
