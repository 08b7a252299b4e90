public import Acme
import HttpWare

/// Checks the listeners that other listeners need for `acme`.
struct AcmeRules {
    private(set) var diagnostics = Diagnostics()

    init(_ listeners: [ListenerDefinition]) {
        for listener in listeners {
            guard let tls = listener.tls, let acme = tls.acme, acme.challenge == .http01 else { continue }
            let keyPath = "listeners.\(listener.name).tls.acme"
            guard let name = acme.listener else {
                if !listeners.contains(where: { $0.answersHttp01(of: acme) }) {
                    diagnostics.error(
                        at: tls.acmeLocation, keyPath,
                        "http-01 needs a reverse listener without TLS on port 80; write one, or listener with the name of the listener that gets the requests to port 80"
                    )
                }
                continue
            }
            guard let other = listeners.first(where: { $0.name == name }) else {
                let near = didYouMean(name, among: listeners.map(\.name).sorted())
                diagnostics.error(
                    at: tls.acmeLocation, "\(keyPath).listener", "there is no listener \(name.quotedForErrors)\(near)")
                continue
            }
            if !other.answersHttp01(of: acme) {
                diagnostics.error(
                    at: tls.acmeLocation, "\(keyPath).listener",
                    "\(name.quotedForErrors) has TLS, or is a forward listener; http-01 needs a reverse listener without TLS"
                )
            }
        }
    }
}

extension ListenerDefinition {
    /// Whether the listener answers the challenges of http-01 for these settings.
    public func answersHttp01(of acme: AcmeSettings) -> Bool {
        guard acme.challenge == .http01, tls == nil, mode == .reverse else { return false }
        return acme.listener.map { $0 == name } ?? (bind.port == 80)
    }
}
