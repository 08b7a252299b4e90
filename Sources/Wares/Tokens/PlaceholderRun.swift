public import Credentials
public import HttpWare
import Synchronization

/// One run of a program that gets placeholders instead of tokens.
public final class PlaceholderRun: PlaceholderWatch {
    /// The identifier of the run in audit lines.
    public let id: String
    /// The environment variables of the program, with their placeholders.
    public let variables: [String: String]
    private let credentials: [TokenPlaceholder: String]
    /// The audit output of each credential, by its name.
    private let audits: [String: LogSink]
    private let reports = Mutex<(@Sendable (String) -> Void)?>(nil)

    /// Makes a placeholder for each credential that has a variable, and finds the audit outputs in the wares of these
    /// chains.
    public init(_ credentials: [Credential], chains: [WareChain]) {
        var random = SystemRandomNumberGenerator()
        let number = String(random.next() as UInt64, radix: 16)
        id = String(repeating: "0", count: 16 - number.count) + number
        var variables: [String: String] = [:]
        var names: [TokenPlaceholder: String] = [:]
        for credential in credentials {
            guard let variable = credential.definition.env else { continue }
            let issued = credential.issuePlaceholder(run: id)
            variables[variable] = issued.placeholder.text
            names[issued.placeholder] = credential.name
        }
        self.variables = variables
        self.credentials = names
        var audits: [String: LogSink] = [:]
        for entry in chains.flatMap(\.entries.middlewares) {
            guard let ware = entry.ware as? TokenInject, let credential = ware.credential,
                let sink = ware.placeholders?.audit
            else { continue }
            audits[credential.name] = audits[credential.name] ?? sink
        }
        self.audits = audits
    }

    /// Sets the receiver of refusals for which there is no audit output.
    public func report(to log: @escaping @Sendable (String) -> Void) { reports.withLock { $0 = log } }

    public func credential(of placeholder: TokenPlaceholder) -> String? { credentials[placeholder] }

    public func refused(_ placeholder: TokenPlaceholder, _ reason: String, _ exchange: Exchange) {
        let name = credentials[placeholder]
        TokenAudit.refuse(
            placeholder, of: name ?? "", id, name.flatMap { audits[$0] }, reason, exchange
        ) { [self] line in reports.withLock { $0 }?(line) }
    }
}
