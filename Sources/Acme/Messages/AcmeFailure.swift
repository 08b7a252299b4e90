import HttpWare

/// Why a certificate authority issued no certificate.
public struct AcmeFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure.
    public enum Kind: Sendable, Equatable {
        /// The authority was not reached, or did not answer in time.
        case unreachable
        /// The authority refused with this type of problem. The common prefix of the types is left out.
        case refused(String)
        /// The authority's answer violates RFC 8555.
        case badAnswer
        /// The order needed too much time or too many calls.
        case endless
        /// The failure is local: a file, or memory.
        case local
        /// The store that gateways share cannot be reached, or has a value that cannot be opened.
        case unkept
    }

    /// The kind of failure.
    public let kind: Kind
    /// The reason, for people: starts in lower case, ends without a full stop.
    public let reason: String
    /// How long the authority asks to wait before the next attempt.
    public var retryAfter: Duration?

    /// The reason.
    public var description: String { reason }

    init(_ kind: Kind, _ reason: String, retryAfter: Duration? = nil) {
        self.kind = kind
        self.reason = reason
        self.retryAfter = retryAfter
    }

    static func badAnswer(_ what: String) -> AcmeFailure {
        AcmeFailure(.badAnswer, "the certificate authority's answer is not valid: \(what)")
    }

    /// Whether the authority refused with a problem of this type.
    func isRefusal(_ type: String) -> Bool { kind == .refused(type) }
}

/// A problem document of a certificate authority. RFC 8555 §6.7, RFC 9457.
struct AcmeProblem: Equatable {
    /// The type, without the prefix of ACME's error types.
    let type: String
    /// The description, with those of the subproblems, on one line and cut.
    let detail: String

    private static let prefix = "urn:ietf:params:acme:error:"
    /// The most subproblems that are described.
    private static let mostParts = 5

    /// Reads a problem; missing values become empty.
    init(_ json: JsonValue) {
        let type = json["type"]?.string ?? ""
        self.type = type.hasPrefix(AcmeProblem.prefix) ? String(type.dropFirst(AcmeProblem.prefix.count)) : type
        let parts = (json["subproblems"]?.elements ?? []).prefix(AcmeProblem.mostParts).map { part in
            let name = part["identifier"]?["value"]?.string.map { "\(AcmeProblem.line($0)): " } ?? ""
            return name + AcmeProblem.line(part["detail"]?.string ?? "")
        }
        detail = ([AcmeProblem.line(json["detail"]?.string ?? "")] + parts).filter { !$0.isEmpty }.joined(
            separator: "; ")
    }

    /// The problem as a failure.
    func failure(_ what: String, status: Int? = nil, retryAfter: Duration? = nil) -> AcmeFailure {
        let name = type.isEmpty ? status.map { "status \($0)" } ?? "no reason given" : AcmeProblem.line(type)
        return AcmeFailure(
            .refused(type), "\(what): \(name)\(detail.isEmpty ? "" : ": \(detail)")", retryAfter: retryAfter)
    }

    /// A peer's text on one line, without control characters, and cut.
    static func line(_ text: String) -> String {
        let scalars = text.unicodeScalars.prefix(300).map {
            $0.value < 0x20 || (0x7f...0x9f).contains($0.value) ? " " : $0
        }
        var line = String.UnicodeScalarView()
        line.append(contentsOf: scalars)
        return String(line)
    }
}
