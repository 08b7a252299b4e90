/// The target of a request as its client sent it: the part that a client's signature covers. RFC 9421 §2.2.
public struct ReceivedTarget: Sendable {
    /// `host` or `host:port`, in lower case and without the default port; empty if the request named none.
    public let authority: String
    /// The path as received, or `/`.
    public let path: [UInt8]
    /// The query as received, without its question mark.
    public let query: [UInt8]?

    init(_ target: borrowing RequestTarget, authority: Authority?) {
        let usual: UInt16 = target.isSecure ? 443 : 80
        self.authority = authority.map { $0.port == usual ? $0.host : $0.description } ?? ""
        let received = target.bytes[target.received.range]
        var start = received.startIndex
        if target.form == .absolute, received.first != 0x2f {
            // The authority follows the two slashes.
            let host = (received.firstIndex(of: 0x2f) ?? received.startIndex) + 2
            start =
                received[min(host, received.endIndex)...].firstIndex { $0 == 0x2f || $0 == 0x3f } ?? received.endIndex
        }
        let question = target.form == .authority ? nil : received[start...].firstIndex(of: 0x3f)
        let path = target.form == .authority ? [] : Array(received[start..<(question ?? received.endIndex)])
        self.path = path.isEmpty ? [0x2f] : path
        query = question.map { Array(received[($0 + 1)...]) }
    }
}

extension HttpRequest {
    /// The target as received, regardless of later changes by wares.
    public var receivedParts: ReceivedTarget { ReceivedTarget(target, authority: receivedAuthority) }
}
