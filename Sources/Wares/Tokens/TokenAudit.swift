import HttpWare

/// Writes how each credential was used in an exchange: one line of JSON for each credential when the exchange ends. The
/// line never contains the token.
enum TokenAudit {
    /// The lines to be written for an exchange: one entry for each credential.
    private enum Notes: ExchangeKey {
        typealias Value = [Entry]
    }

    private struct Entry {
        let credential: String
        let run: String
        let placeholder: TokenPlaceholder
        let sink: LogSink?
        /// Why the request was refused; `nil` if it was not refused.
        var refusal: String?
        /// Receives the line of a refused request if there is no sink.
        var log: (@Sendable (String) -> Void)?
    }

    /// Notes that the exchange may carry the token.
    static func watch(
        _ placeholder: TokenPlaceholder, of credential: String, _ run: String, _ sink: LogSink?, _ exchange: Exchange
    ) {
        note(
            Entry(credential: credential, run: run, placeholder: placeholder, sink: sink, refusal: nil, log: nil),
            exchange)
    }

    /// Notes that the request was refused.
    static func refuse(
        _ placeholder: TokenPlaceholder, of credential: String, _ run: String, _ sink: LogSink?, _ reason: String,
        _ exchange: Exchange, log: @escaping @Sendable (String) -> Void
    ) {
        note(
            Entry(credential: credential, run: run, placeholder: placeholder, sink: sink, refusal: reason, log: log),
            exchange)
    }

    private static func note(_ entry: Entry, _ exchange: Exchange) {
        var entries = exchange[Notes.self] ?? []
        if entries.isEmpty { exchange.onEnd(write) }
        if let index = entries.firstIndex(where: { $0.credential == entry.credential }) {
            if entry.refusal != nil { entries[index] = entry }
        } else {
            entries.append(entry)
        }
        exchange[Notes.self] = entries
    }

    private static func write(_ exchange: Exchange) {
        for entry in exchange[Notes.self] ?? [] {
            let action: String
            if entry.refusal != nil {
                action = "refused"
            } else if exchange.hasScrubbed(entry.placeholder) {
                action = "scrubbed"
            } else if exchange.hasSwapped(entry.placeholder) {
                action = "used"
            } else {
                continue
            }
            AuditTrail.shared.add(
                .credential, members(entry, action, exchange), at: exchange.wallNow, to: entry.sink)
            if entry.sink == nil, let refusal = entry.refusal {
                entry.log?("\(exchange.request?.host ?? "-"): \(refusal)")
            }
        }
    }

    private static func members(_ entry: Entry, _ action: String, _ exchange: Exchange) -> [(String, Json)] {
        let request = exchange.request
        return [
            ("run", .text(entry.run)), ("credential", .text(entry.credential)), ("action", .text(action)),
            ("host", .optional(request?.host)), ("method", .optional(request?.method.name)),
            ("path", .optional(request?.path)), ("status", exchange.finalStatus.map { .number($0.code) } ?? .null),
            ("reason", .optional(entry.refusal)),
        ]
    }
}
