import Credentials
import HttpWare

/// What wares of one joined chain may do with one credential together.
struct CredentialRules {
    /// The options of a credential that nothing may print.
    static let secretKeys: Set<String> = ["clientSecret", "refreshToken", "value"]

    private(set) var errors = Diagnostics()
    private(set) var warnings = Diagnostics()
    private var seen: Set<ObjectIdentifier> = []
    private var told: Set<SourceLocation> = []

    private typealias User = (ware: any CredentialUser, entry: ChainEntry)

    /// Judges a joined chain, each once.
    mutating func check(_ chain: WareChain) {
        guard seen.insert(ObjectIdentifier(chain)).inserted else { return }
        let users = chain.entries.middlewares.compactMap { entry -> User? in
            (entry.ware as? any CredentialUser).map { ($0, entry) }
        }
        for user in users {
            guard let credential = user.ware.credential else { continue }
            let refresh = users.firstIndex {
                $0.ware.credentialUse == .refreshes && $0.ware.credential === credential
            }
            switch user.ware.credentialUse {
            case .holds:
                guard let refresh, told.insert(user.entry.location).inserted else { continue }
                errors.error(
                    at: user.entry.location, user.entry.label,
                    "holds requests for credential \(credential.name), and so does \(users[refresh].entry.label), at"
                        + " \(users[refresh].entry.location); write only one of them")
            case .injects:
                // One that stands behind it is a matter of order, and told there.
                guard credential.definition.grant != .static, refresh == nil,
                    told.insert(user.entry.location).inserted
                else { continue }
                warnings.warning(
                    at: user.entry.location, user.entry.label,
                    "stands outside tokenRefresh: a 401 for its token is not answered with a new one; put"
                        + " tokenRefresh: { credential: \(credential.name) } before it")
            case .refreshes, .clears: continue
            }
        }
    }
}
