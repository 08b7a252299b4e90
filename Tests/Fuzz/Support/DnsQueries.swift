import HttpWare
@testable import Jail

extension Fuzzing {
    private static let names = SyntheticNames(capacity: 4)

    /// A DNS query: its response is a response to the same query, not much longer, and an address leads back to the name.
    public static func dnsQueries(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        let bytes = Array(UnsafeBufferPointer(start: start, count: count))
        let answers = NameAnswers(names: names, answers: true)
        guard let response = answers.response(to: bytes) else { return }
        require(response.count >= 12 && response.count <= bytes.count + 28, "\(response.count) bytes")
        require(response[..<2].elementsEqual(bytes[..<2]) && response[2] & 0x80 != 0, "no response to the query")
        guard case .query(let query) = DnsQuery.read(bytes) else { return }
        require(query.name.utf8.count <= 253, "a name of \(query.name.utf8.count) bytes")
        guard response[7] == 1, query.kind == 1, query.name != "localhost", !query.name.hasSuffix(".localhost") else {
            return
        }
        let address = response.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        let destination = names.destination(IPAddress(ipv4: address), port: 443)
        require(destination?.host == query.name && destination?.isNamed == true, "another host: \(query.name)")
    }
}
