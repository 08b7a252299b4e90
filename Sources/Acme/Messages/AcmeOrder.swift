import Credentials
public import HttpWare

/// An order for a certificate. RFC 8555 §7.1.3.
struct AcmeOrder: Sendable {
    enum Status: String, Sendable { case pending, ready, processing, valid, invalid }

    let status: Status
    let authorizations: [AcmeUrl]
    let finalize: AcmeUrl
    let certificate: AcmeUrl?
    let problem: AcmeProblem?

    /// Reads the order for these names. Refuses an order for other names, or with more authorizations than names.
    init(_ json: JsonValue, for names: [String], at directory: EndpointUrl) throws(AcmeFailure) {
        guard let status = json["status"]?.string.flatMap(Status.init) else {
            throw .badAnswer("the order has no status")
        }
        self.status = status
        let identifiers = json["identifiers"]?.elements ?? []
        let ordered = identifiers.compactMap { $0["type"]?.string == "dns" ? $0["value"]?.string?.lowercased() : nil }
        guard ordered.count == identifiers.count, ordered.sorted() == names.sorted() else {
            throw .badAnswer("the order is for other names")
        }
        let places = json["authorizations"]?.elements ?? []
        guard places.count <= names.count else { throw .badAnswer("the order has more authorizations than names") }
        authorizations = try places.map { place throws(AcmeFailure) in
            try AcmeUrl(place.string ?? "", under: directory)
        }
        finalize = try AcmeUrl(json, "finalize", under: directory)
        certificate = json["certificate"] == nil ? nil : try AcmeUrl(json, "certificate", under: directory)
        problem = json["error"].flatMap { $0 == .null ? nil : AcmeProblem($0) }
    }
}

/// The proof of control over one name. RFC 8555 §7.1.4.
struct AcmeAuthorization: Sendable {
    enum Status: String, Sendable { case pending, valid, invalid, deactivated, expired, revoked }

    /// One way to prove control. RFC 8555 §8.
    struct Challenge: Sendable {
        let type: String
        let url: AcmeUrl
        let token: String
        let problem: AcmeProblem?
    }

    let status: Status
    let name: String
    /// The challenges of supported kinds with a valid token.
    let challenges: [Challenge]

    /// The most challenges that are read.
    private static let mostChallenges = 20

    init(_ json: JsonValue, at directory: EndpointUrl) throws(AcmeFailure) {
        guard let status = json["status"]?.string.flatMap(Status.init) else {
            throw .badAnswer("an authorization has no status")
        }
        guard json["identifier"]?["type"]?.string == "dns", let name = json["identifier"]?["value"]?.string else {
            throw .badAnswer("an authorization has no name")
        }
        self.status = status
        self.name = name.lowercased()
        var challenges: [Challenge] = []
        for member in (json["challenges"]?.elements ?? []).prefix(AcmeAuthorization.mostChallenges) {
            guard let kind = member["type"]?.string, ChallengeKind(rawValue: kind) != nil else { continue }
            guard let token = member["token"]?.string, AcmeAuthorization.isToken(token) else {
                throw .badAnswer("a challenge has no valid token")
            }
            challenges.append(
                Challenge(
                    type: kind, url: try AcmeUrl(member, "url", under: directory), token: token,
                    problem: member["error"].flatMap { $0 == .null ? nil : AcmeProblem($0) }))
        }
        self.challenges = challenges
    }

    /// Base64url only: a token becomes part of a path. RFC 8555 §8.3.
    static func isToken(_ text: String) -> Bool {
        (16...256).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                switch $0 {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: true
                default: false
                }
            }
    }
}

/// The way in which control of a name is proved.
public enum ChallengeKind: String, OptionWord, Hashable {
    /// In a TLS handshake on port 443. RFC 8737.
    case tlsAlpn01 = "tls-alpn-01"
    /// By a request in clear text on port 80. RFC 8555 §8.3.
    case http01 = "http-01"
}
