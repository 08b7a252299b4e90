import GatewayConfig
import HttpWare

extension InterceptRules {
    /// The rules of a listener; `nil` if it reads no tunnels. Services are made once and shared by name.
    convenience init?(_ listener: ListenerDefinition, services: [String: UpstreamService], table: RouteTable) {
        guard let intercept = listener.intercept else { return nil }
        let judges = listener.chain.filtered(Self.judgesTunnels)
        let opaque = RouteTable(listener, services: services) { chain in
            // Wares that count have counted the CONNECT already; wares that answer or edit act only on requests.
            chain.filtered { entry in
                (Self.judgesTunnels(entry) || Self.place(entry) == .timeLimits)
                    && !(Self.counts(entry) && judges.contains(entry))
            }
        }
        self.init(
            authority: intercept.authority, tls: intercept.context, hosts: intercept.hosts,
            except: intercept.except, passPinned: intercept.passPinned, tunnelsOpaque: intercept.opaque == .tunnel,
            chain: judges, opaqueRouter: opaque, reaches: { table.couldReach($0, $1) })
    }

    /// Whether a ware acts on a CONNECT whose tunnel is read: it identifies, restricts, limits or observes clients. Wares that
    /// answer or edit requests act on the requests inside.
    private static func judgesTunnels(_ entry: ChainEntry) -> Bool {
        let isAccessControl = (type(of: entry.ware) as? any AccessRule.Type)?.isAccessControl ?? false
        if isAccessControl || entry.ware is any AuthenticatingWare { return true }
        return switch place(entry) {
        case .requestIdentifier, .tracing, .accessRules, .authentication, .rateLimits, .concurrencyLimits, .timing,
            .metrics, .accessLog:
            true
        default: false
        }
    }

    private static func counts(_ entry: ChainEntry) -> Bool {
        [.rateLimits, .concurrencyLimits].contains(place(entry))
    }

    private static func place(_ entry: ChainEntry) -> ChainPlace? {
        (type(of: entry.ware) as? any ConfigurableWare.Type)?.chainPlace
    }
}

extension WareChain {
    /// The chain with only some of its entries.
    fileprivate func filtered(_ isIncluded: (ChainEntry) -> Bool) -> WareChain {
        // Cannot throw: each entry stays on its side.
        let filtered = try? WareChain(
            middlewares: entries.middlewares.filter(isIncluded), postwares: entries.postwares.filter(isIncluded))
        return filtered ?? .empty
    }

    /// Whether the chain contains an entry from the same line of the file.
    fileprivate func contains(_ entry: ChainEntry) -> Bool {
        (entries.middlewares + entries.postwares).contains {
            $0.location == entry.location && $0.label == entry.label
        }
    }
}
