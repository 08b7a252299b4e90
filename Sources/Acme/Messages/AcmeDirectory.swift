import Credentials
import HttpWare

/// The URLs and features of a certificate authority. RFC 8555 §7.1.1.
struct AcmeDirectory: Sendable, Equatable {
    let newNonce: AcmeUrl
    let newAccount: AcmeUrl
    let newOrder: AcmeUrl
    /// The URL of renewal information. RFC 9773 §4.
    let renewalInfo: AcmeUrl?
    let needsExternalAccount: Bool
    /// The names of the profiles that an order may request; `nil` if the directory does not mention profiles.
    let profiles: [String]?

    init(_ json: JsonValue, at place: EndpointUrl) throws(AcmeFailure) {
        newNonce = try AcmeUrl(json, "newNonce", under: place)
        newAccount = try AcmeUrl(json, "newAccount", under: place)
        newOrder = try AcmeUrl(json, "newOrder", under: place)
        renewalInfo = json["renewalInfo"] == nil ? nil : try AcmeUrl(json, "renewalInfo", under: place)
        let meta = json["meta"]
        needsExternalAccount = meta?["externalAccountRequired"] == .boolean(true)
        profiles = meta?["profiles"]?.members?.map(\.name)
    }

    /// Throws if the directory lacks this profile.
    func require(profile: String?) throws(AcmeFailure) {
        guard let profile, !(profiles?.contains(profile) ?? false) else { return }
        let offered = profiles.map { AcmeProblem.line($0.joined(separator: ", ")) } ?? ""
        throw AcmeFailure(
            .refused("invalidProfile"),
            "the certificate authority has no profile \(profile.quotedForErrors)"
                + (offered.isEmpty ? "; remove profile" : "; it has \(offered)"))
    }

    /// Throws if an external account is needed and none is given.
    func require(external: ExternalAccount?) throws(AcmeFailure) {
        guard needsExternalAccount, external == nil else { return }
        throw AcmeFailure(
            .refused("externalAccountRequired"),
            "the certificate authority needs an external account; write externalAccount with the keyId and the macKey that it gave you"
        )
    }
}

/// A URL from a certificate authority. It must not lead from TLS to clear text. If its host differs from the directory's host,
/// its address must not be private.
struct AcmeUrl: Sendable, Hashable {
    let text: String
    let isElsewhere: Bool

    private static let longest = 2048

    init(_ text: String, under directory: EndpointUrl) throws(AcmeFailure) {
        guard text.utf8.count <= AcmeUrl.longest, let url = EndpointUrl(text), url.isSecure || !directory.isSecure
        else {
            throw .badAnswer("\(text.quotedForErrors) is not a URL that can be used")
        }
        self.text = text
        isElsewhere = url.host != directory.host
    }

    /// The URL in a member of a JSON object.
    init(_ json: JsonValue, _ name: String, under directory: EndpointUrl) throws(AcmeFailure) {
        guard let text = json[name]?.string else { throw .badAnswer("\(name) is missing") }
        try self.init(text, under: directory)
    }
}
