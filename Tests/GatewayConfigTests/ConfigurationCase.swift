import Foundation
import GatewayConfig
import HttpWare
import Testing

/// A text file: configuration files, a line of dashes, and what reading them comes to.
///
/// The first file is `httpware.yaml`; a line `=== NAME` begins another, `=== env` the environment (`NAME=value` lines).
/// A case with its expectation: every error and warning, in order; and any lines of the result's summary.
struct ConfigurationCase: CustomTestStringConvertible {
    let name: String
    var files: [String: [UInt8]] = ["httpware.yaml": []]
    var environment: [String: String] = [:]
    var expected: [String] = []

    var testDescription: String { name }

    static let all = all(in: "Cases")

    /// The cases of a folder.
    static func all(in folder: String) -> [ConfigurationCase] {
        let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(folder)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        return names.filter { $0.hasSuffix(".txt") }.sorted().map { name in
            let text = (try? String(contentsOf: directory.appendingPathComponent(name), encoding: .utf8)) ?? ""
            return ConfigurationCase(name: name, text: text)
        }
    }

    init(name: String, text: String) {
        self.name = name
        var file = "httpware.yaml"
        var texts: [String: [String]] = [:]
        var isExpectation = false
        for line in text.components(separatedBy: "\n") {
            if isExpectation {
                if !line.isEmpty { expected.append(line) }
            } else if line.hasPrefix("----------") {
                isExpectation = true
            } else if line.hasPrefix("=== ") {
                file = String(line.dropFirst(4))
                texts[file] = []
            } else if file == "env" {
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
            } else {
                texts[file, default: []].append(line)
            }
        }
        for (name, lines) in texts where name != "env" {
            files[name] = Array((lines.joined(separator: "\n") + "\n").utf8)
        }
    }

    /// Reads the files from memory.
    func read(
        _ path: String = "httpware.yaml", keeping former: GatewayConfiguration? = nil
    ) -> ConfigurationReader.Result {
        let files = self.files
        let source = ConfigurationFiles(
            read: { path, limit throws(ConfigurationFiles.Fault) in
                guard let content = files[path] else {
                    throw ConfigurationFiles.Fault("no such file or directory", isAbsent: true)
                }
                return content
            },
            list: { pattern in
                // One star is all that the cases need.
                let parts = pattern.components(separatedBy: "*")
                return files.keys.filter { $0.hasPrefix(parts[0]) && $0.hasSuffix(parts[parts.count - 1]) }.sorted()
            })
        return ConfigurationReader(
            wares: ScriptedWares.all, stores: ScriptedWares.stores, environment: environment, files: source
        )
        .read(path: path, keeping: former)
    }
}

extension GatewayConfiguration {
    /// The configuration in lines, as the cases expect it.
    var summary: [String] {
        var lines: [String] = []
        for listener in listeners {
            let limits = listener.limits
            lines.append("listener \(listener.name) \(listener.bind) \(listener.mode.rawValue) \(listener.location)")
            lines.append(
                "  limits head \(limits.head) fieldLines \(limits.fieldLines) target \(limits.requestTarget)"
                    + " connections \(limits.connections) headTimeout \(limits.headTimeout.optionText)"
                    + " idleTimeout \(limits.idleTimeout.optionText) bodyMinRate \(limits.bodyMinRate?.description ?? "-")"
            )
            lines.append("  http2 \(listener.http2)")
            lines.append("  connectPorts \(listener.connectPorts) denyPrivate \(listener.denyPrivate)")
            lines.append("  trusted \(listener.trustedProxies.map(\.description).joined(separator: " "))")
            if !listener.proxyHeaderPeers.isEmpty {
                lines.append(
                    "  proxyProtocol from \(listener.proxyHeaderPeers.map(\.description).joined(separator: " "))")
            }
            let reason = listener.ambiguityReason.map { ": the path decides about \($0)" } ?? ""
            lines.append("  paths \(listener.refusesAmbiguousPaths ? "strict" : "lenient")\(reason)")
            lines.append("  chain \(Self.shown(listener.chain))")
            for resolved in listener.routes {
                let route = resolved.route
                guard route.shares.isEmpty else {
                    let chains = resolved.chains.map(Self.shown)
                    for (share, chain) in zip(route.shares, chains) {
                        lines.append("  route \(route.name) → \(share.weight) × \(share.serviceName): \(chain)")
                    }
                    if let sticky = route.sticky {
                        lines.append("  sticky \(sticky.means) ttl \(sticky.ttl.optionText) keys \(sticky.keys)")
                    }
                    continue
                }
                let service = route.service?.name ?? "-"
                lines.append("  route \(route.name) → \(service): \(Self.shown(resolved.chain))")
            }
        }
        for service in services {
            let timeouts = service.timeouts
            lines.append("service \(service.name) host \(service.host.optionText) balance \(service.balance.rawValue)")
            lines.append(contentsOf: Self.balancing(service).map { "  \($0)" })
            for endpoint in service.endpoints {
                lines.append(
                    "  endpoint \(endpoint.host) \(endpoint.port) [\(endpoint.basePath)] × \(endpoint.weight)"
                        + (endpoint.isBackup ? " backup" : ""))
            }
            lines.append(
                "  timeouts connect \(timeouts.connect.optionText) response \(timeouts.response.optionText)"
                    + " idle \(timeouts.idle.optionText) total \(timeouts.total?.optionText ?? "-")")
            lines.append("  pool \(service.pool.maxIdle) \(service.pool.maxPerEndpoint.map(String.init) ?? "none")")
            lines.append("  limits response head \(service.limits.head) fieldLines \(service.limits.fieldLines)")
            lines.append(contentsOf: service.headers.map { "  header \($0.key): \($0.value.text)" })
        }
        if passthrough.location != .code {
            let timeouts = passthrough.timeouts
            lines.append(
                "passthrough timeouts connect \(timeouts.connect.optionText) response \(timeouts.response.optionText)"
                    + " idle \(timeouts.idle.optionText) total \(timeouts.total?.optionText ?? "-")"
                    + " pool \(passthrough.pool.maxIdle) \(passthrough.pool.maxPerEndpoint.map(String.init) ?? "none")"
                    + " head \(passthrough.limits.head) fieldLines \(passthrough.limits.fieldLines)")
        }
        for route in routes {
            let match = route.match
            let parts =
                match.methods.map(\.name) + match.hosts.map(\.source) + match.paths.map(\.source)
                + (match.headers + match.query).map {
                    "\($0.name)=\($0.values.map(\.optionText).joined(separator: "|"))"
                }
            lines.append("match \(route.name): \(parts.joined(separator: " "))")
        }
        if let admin { lines.append("admin \(admin.bind) ui \(admin.ui) token \(admin.token.map { "\($0)" } ?? "-")") }
        if resolver != ResolverDefinition() { lines.append("resolver maxTtl \(resolver.maxTtl.optionText)") }
        lines.append("log \(log.level.rawValue) \(log.format.rawValue) \(log.output.optionText)")
        return lines
    }

    /// The options of a service's balancing beyond its rule.
    private static func balancing(_ service: ConfiguredService) -> [String] {
        var lines: [String] = []
        if !service.fallbacks.isEmpty { lines.append("fallbacks \(service.fallbacks.joined(separator: " "))") }
        if let key = service.hashKey {
            lines.append("hashKey \(key.optionText)" + (service.hashBound ? "" : " without bound"))
        }
        if let sticky = service.sticky {
            let cookie = sticky.cookie
            lines.append(
                "sticky \(cookie.name) ttl \(cookie.ttl?.optionText ?? "-") path \(cookie.path) domain \(cookie.domain ?? "-")"
                    + " httpOnly \(cookie.isHttpOnly) secure \(cookie.isSecure.map { "\($0)" } ?? "-")"
                    + " sameSite \(cookie.sameSite.rawValue) keys \(sticky.keys)")
        }
        if let version = service.proxyProtocol { lines.append("proxyProtocol \(version.rawValue)") }
        if !service.references.rewritesRedirects { lines.append("rewriteRedirects false") }
        let cookies = service.references.cookies
        if cookies != .init() {
            lines.append(
                "rewriteCookies domain \(cookies.domain ?? "-") path \(cookies.path ?? "-") secure \(cookies.isSecure.map { "\($0)" } ?? "-")"
            )
        }
        if service.slowStart > .zero { lines.append("slowStart \(service.slowStart.optionText)") }
        if let check = service.healthCheck {
            lines.append(
                "healthCheck \(check.path) interval \(check.interval.optionText) timeout \(check.timeout.optionText)"
                    + " fails \(check.fails) passes \(check.passes) statuses \(check.statuses)")
        }
        if let ejection = service.ejection {
            lines.append(
                "ejection \(ejection.failures) for \(ejection.base.optionText) maxFor \(ejection.longest.optionText)"
                    + " maxOut \(ejection.mostOut)")
        }
        return lines
    }

    private static func shown(_ chain: WareChain) -> String {
        let sides = [chain.entries.middlewares, chain.entries.postwares]
        return sides.map { entries in
            entries.map { entry in
                let name = "\(entry.ware)"
                let label = name.hasPrefix(entry.label) ? "" : entry.label + ":"
                return label + name + (entry.condition == nil ? "" : "?")
            }.joined(separator: ", ")
        }.joined(separator: " | ")
    }
}
