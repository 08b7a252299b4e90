/// A route whose requests several services share, as the admin listener reports it, and its lines in a table: one for each service.
struct SplitLines: Decodable {
    /// A service and its weight.
    struct Share: Decodable {
        let service: String
        let weight: Int
    }

    let route: String
    let sticky: String?
    let shares: [Share]

    /// The routes as a table.
    static func table(_ splits: [SplitLines]) -> [String] {
        TextTable.lines([["ROUTE", "SERVICE", "WEIGHT", "SHARE", "STICKY"]] + splits.flatMap(\.rows))
    }

    private var rows: [[String]] {
        let all = max(1, shares.reduce(0) { $0 + $1.weight })
        return shares.map { share in
            let tenths = (share.weight * 1000 + all / 2) / all
            return [route, share.service, String(share.weight), "\(tenths / 10).\(tenths % 10) %", sticky ?? "-"]
                .map(TerminalStyle.plain.shown)
        }
    }
}
