import Credentials
import HttpWare

/// The rules for wares of one joined chain that use the same credential.
struct CredentialRules {
    /// The options of a credential whose values must never be printed.
    static let secretKeys: Set<String> = ["clientSecret", "refreshToken", "value"]

    private(set) var errors = Diagnostics()
    private(set) var warnings = Diagnostics()
    private var seen: Set<ObjectIdentifier> = []
    private var told: Set<SourceLocation> = []
    private var seenPassthrough: Set<ObjectIdentifier> = []

    private typealias User = (ware: any CredentialUser, entry: ChainEntry)

    /// Checks the chain of a route whose clients choose the origin server: a token in a request is meant for one server only.
    mutating func checkPassthrough(_ chain: WareChain) {
        guard seenPassthrough.insert(ObjectIdentifier(chain)).inserted else { return }
        let entries = chain.entries.middlewares
        for (index, entry) in entries.enumerated() where entry.ware.bindsAuthority {
            let changer = entries[(index + 1)...].first {
                $0.ware.changesAuthority && ($0.condition == nil || entry.condition == nil)
            }
            guard let changer, told.insert(changer.location).inserted else { continue }
            let name = changer.ware.configuredName ?? changer.label
            warnings.warning(
                at: changer.location, changer.label,
                "stands after \(entry.label), at \(entry.location): it sends requests to another host than the token's,"
                    + " so they are refused; put \(name) first")
        }
    }

    /// Checks a joined chain, unless it was checked before.
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
                        + " \(users[refresh].entry.location); keep only one of them")
            case .injects:
                // If it stands after this entry, the warning about the order reports it.
                guard credential.definition.grant != .static, refresh == nil,
                    told.insert(user.entry.location).inserted
                else { continue }
                warnings.warning(
                    at: user.entry.location, user.entry.label,
                    "has no tokenRefresh before it: after a 401 for its token, no new token is requested; put"
                        + " tokenRefresh: { credential: \(credential.name) } before it")
            case .refreshes, .clears: continue
            }
        }
    }
}
