/// A request method: one of the registered ones, or any other token. RFC 9110 §9.
///
/// Unknown methods are forwarded as they are. Methods are case-sensitive.
public struct HttpMethod: Hashable, Sendable {
    /// The method as it stands in the request line: a token, such as `GET`.
    public let name: String

    /// Makes a method from its name; `nil` when the name is no token (RFC 9110 §5.6.2).
    public init?(_ name: String) {
        guard !name.isEmpty, name.utf8.allSatisfy({ ByteClass.isToken($0) }) else { return nil }
        self.name = name
    }

    /// A name that is known to be a token.
    init(verified name: String) { self.name = name }

    public static let get = HttpMethod(verified: "GET")
    public static let head = HttpMethod(verified: "HEAD")
    public static let post = HttpMethod(verified: "POST")
    public static let put = HttpMethod(verified: "PUT")
    public static let delete = HttpMethod(verified: "DELETE")
    public static let connect = HttpMethod(verified: "CONNECT")
    public static let options = HttpMethod(verified: "OPTIONS")
    public static let trace = HttpMethod(verified: "TRACE")
    public static let patch = HttpMethod(verified: "PATCH")

    /// Whether the method asks for no change of state: GET, HEAD, OPTIONS, TRACE. RFC 9110 §9.2.1.
    public var isSafe: Bool { self == .get || self == .head || self == .options || self == .trace }

    /// Whether sending the request twice has the effect of sending it once: the safe ones, PUT and DELETE.
    /// RFC 9110 §9.2.2.
    public var isIdempotent: Bool { isSafe || self == .put || self == .delete }
}

extension HttpMethod: CustomStringConvertible {
    public var description: String { name }
}
