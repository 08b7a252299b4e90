/// A request method: a registered one, or any other token. RFC 9110 §9.
///
/// Unknown methods are forwarded unchanged. Methods are case-sensitive.
public struct HttpMethod: Sendable {
    /// The number of a known method, compared on the data path instead of text; 0 for others.
    private let code: UInt8
    /// The name of an unknown method.
    private let other: OtherName?

    private final class OtherName: Sendable {
        let text: String
        let traits: Traits
        init(_ text: String) {
            self.text = text
            traits = RegisteredMethods.traits[text] ?? .none
        }
    }

    /// The properties of a method by the registry. RFC 9110 §16.1.1.
    enum Traits: Sendable {
        case none, idempotent
        /// Safe, and therefore idempotent. RFC 9110 §9.2.2.
        case safe
    }

    private var traits: Traits {
        switch code {
        case 1, 2, 7, 8: .safe
        case 4, 5: .idempotent
        default: other?.traits ?? .none
        }
    }

    /// Whether it is the same known method, decided without comparing text.
    @inline(__always)
    func isSurely(_ method: HttpMethod) -> Bool { code == method.code && code != 0 }

    private static let names = ["", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]

    /// A number for each known method, and 0 for all others: for tables.
    @inline(__always)
    var knownPlace: Int { code < 10 ? Int(code) : 0 }

    /// The count of these numbers.
    static var knownCount: Int { names.count }

    /// The name of the method with that number; `nil` for other numbers.
    static func knownName(at place: Int) -> String? { place > 0 && place < names.count ? names[place] : nil }

    /// Makes a method from its name; `nil` if the name is not a token (RFC 9110 §5.6.2).
    public init?(_ name: String) {
        guard !name.isEmpty, name.utf8.allSatisfy({ ByteClass.isToken($0) }) else { return nil }
        self.init(verified: name)
    }

    /// Makes a method from a verified token.
    init(verified name: String) {
        let known = HttpMethod.names.firstIndex(of: name) ?? 0
        code = UInt8(known)
        other = known == 0 ? OtherName(name) : nil
    }

    private init(code: UInt8) {
        self.code = code
        other = nil
    }

    /// The method as in the request line: a token, such as `GET`.
    public var name: String {
        switch code {
        case 1: "GET"
        case 2: "HEAD"
        case 3: "POST"
        case 4: "PUT"
        case 5: "DELETE"
        case 6: "CONNECT"
        case 7: "OPTIONS"
        case 8: "TRACE"
        case 9: "PATCH"
        case 10: "-"
        default: other?.text ?? ""
        }
    }

    /// Stands for an unknown method, while the request line has not been read; it equals no method that was read.
    static var unread: HttpMethod { HttpMethod(code: 10) }

    public static var get: HttpMethod { HttpMethod(code: 1) }
    public static var head: HttpMethod { HttpMethod(code: 2) }
    public static var post: HttpMethod { HttpMethod(code: 3) }
    public static var put: HttpMethod { HttpMethod(code: 4) }
    public static var delete: HttpMethod { HttpMethod(code: 5) }
    public static var connect: HttpMethod { HttpMethod(code: 6) }
    public static var options: HttpMethod { HttpMethod(code: 7) }
    public static var trace: HttpMethod { HttpMethod(code: 8) }
    public static var patch: HttpMethod { HttpMethod(code: 9) }

    public static var query: HttpMethod { HttpMethod(verified: "QUERY") }

    /// Whether the method requests no change of state, according to IANA's registry of methods: GET, HEAD, OPTIONS,
    /// TRACE, QUERY, PROPFIND, REPORT, SEARCH. False for a method that is not registered. RFC 9110 §9.2.1.
    public var isSafe: Bool { traits == .safe }

    /// Whether sending the request twice has the same effect as sending it once, according to IANA's registry of methods:
    /// safe methods, PUT, DELETE, and most methods of WebDAV. False for a method that is not registered. RFC 9110 §9.2.2.
    public var isIdempotent: Bool { traits != .none }

    /// Whether the response contains the request, with all its fields, as the origin server received it: TRACE (RFC 9110 §9.3.8),
    /// and TRACK of some old servers. The case is ignored, as some servers do.
    public var returnsRequest: Bool { code == 8 || code == 0 && isUnusualTrace }

    /// Separate, because almost no requests have unknown methods.
    @inline(never)
    private var isUnusualTrace: Bool { ["TRACE", "TRACK"].contains(name.uppercased()) }
}

extension HttpMethod: Hashable {
    @inline(__always)
    public static func == (left: HttpMethod, right: HttpMethod) -> Bool {
        left.code == right.code && (left.code != 0 || left.other?.text == right.other?.text)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension HttpMethod: CustomStringConvertible {
    public var description: String { name }
}

extension HttpMethod: OptionValue {
    public static let optionType = "method"
    public static var optionForm: OptionForm { FieldName.token }
    public var optionText: String { name }

    /// Reads any token, except a known method in the wrong case: methods are case-sensitive (RFC 9110 §9.1).
    public init(optionText: String) throws(OptionMistake) {
        let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]
        let upper = optionText.uppercased()
        let isWrongCase = optionText != upper && known.contains(upper)
        guard !isWrongCase, let method = HttpMethod(optionText) else {
            throw OptionMistake(
                isWrongCase ? "methods are case-sensitive: write \(upper)" : "write a token such as GET")
        }
        self = method
    }
}
