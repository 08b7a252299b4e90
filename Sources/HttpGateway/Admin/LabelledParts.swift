import GatewayConfig
import HttpWare

extension GatewayConfiguration {
    /// A part of the wares of all chains, by label, in the order of first occurrence. Each object occurs once, even if
    /// several chains and copies of a ware share it.
    func partsByLabel<Part>(_ part: (any Ware) -> Part?) -> [(label: String, parts: [Part])] {
        var result: [(label: String, parts: [Part])] = []
        var places: [String: Int] = [:]
        var seen: Set<ObjectIdentifier> = []
        for chain in listeners.flatMap({ [$0.chain] + $0.routes.flatMap(\.chains) }) {
            for entry in chain.entries.middlewares + chain.entries.postwares {
                guard let found = part(entry.ware), seen.insert(ObjectIdentifier(found as AnyObject)).inserted else {
                    continue
                }
                let place = places[entry.label] ?? result.count
                if place == result.count { result.append((entry.label, [])) }
                places[entry.label] = place
                result[place].parts.append(found)
            }
        }
        return result
    }
}
