/// A credential as the admin listener reports it, and its line in a table.
struct CredentialLine: Decodable {
    /// A refresh that ended.
    struct Refresh: Decodable {
        let number: Int
        let ended: String
        let durationMilliseconds: Int
        let outcome: String
        let reason: String?
    }

    let name: String
    let grant: String
    let state: String
    let expires: String?
    let held: Int
    let lastRefresh: Refresh?
    let shortfall: String?

    /// The credentials as a table, and warnings about them.
    static func table(_ credentials: [CredentialLine]) -> [String] {
        TextTable.lines([["NAME", "GRANT", "STATE", "EXPIRES", "HELD", "LAST REFRESH"]] + credentials.map(\.cells))
            + credentials.compactMap { one in
                one.shortfall.map { TerminalStyle.plain.shown("warning: \(one.name): \($0)") }
            }
    }

    private var cells: [String] {
        let last = lastRefresh.map { refresh in
            let end = refresh.reason.map { ": \($0)" } ?? " in \(refresh.durationMilliseconds)ms"
            return "\(refresh.number) \(refresh.outcome) at \(refresh.ended)\(end)"
        }
        return [name, grant, state, expires ?? "-", String(held), last ?? "-"].map(TerminalStyle.plain.shown)
    }
}
