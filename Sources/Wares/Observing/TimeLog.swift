public import HttpWare

/// Logs how long each phase of an exchange and each ware took, with a warning for slow exchanges.
///
/// An exchange longer than `slow` is logged as a warning, any other with level debug.
public struct TimeLog: Postware, WareObserver, ExchangeObserver {
    /// The duration above which an exchange is logged as a warning.
    public var slow: Duration
    /// Whether responses carry `Server-Timing`.
    public var serverTiming: Bool
    private let log: WareLog

    public var failsOpen: Bool { true }

    public init(slow: Duration = .seconds(1), serverTiming: Bool = false) {
        self.init(slow: slow, serverTiming: serverTiming, log: .shared)
    }

    init(slow: Duration, serverTiming: Bool, log: WareLog) {
        self.slow = slow
        self.serverTiming = serverTiming
        self.log = log
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        guard serverTiming else { return .pass }
        let total = exchange.now.nanoseconds - exchange.record.started
        let phases = exchange.record.phases
        var metrics = phases.map { phase in
            let words = TimeLog.words(phase, of: phases)
            return "\(phase.name);dur=\(TimeLog.text(phase.duration))" + (words.isEmpty ? "" : ";desc=\"\(words)\"")
        }
        for step in exchange.record.wares where step.decision != .skipped {
            metrics.append("\(TimeLog.token(step.label));dur=\(TimeLog.text(step.duration))")
        }
        metrics.append("total;dur=\(TimeLog.text(total))")
        try response.fields.append("Server-Timing", metrics.joined(separator: ", "))
        return .pass
    }

    public func ended(_ exchange: Exchange) {
        let isSlow = exchange.loggedNanoseconds > slow.nanoseconds
        log.log(isSlow ? .warning : .debug, TimeLog.line(exchange, isSlow ? slow : nil))
    }

    // MARK: Times

    private static func line(_ exchange: Exchange, _ slow: Duration?) -> String {
        // The query is left out, because it may contain credentials.
        let target = exchange.request.map { "\($0.receivedMethod) \($0.path.quotedForErrors)" } ?? ""
        var parts = ["\(target) took \(text(exchange.loggedNanoseconds)) ms"]
        if let slow { parts[0] += ", more than \(slow.optionText)" }
        parts[0] += " (status \(exchange.loggedStatus), \(exchange.responder.name))"
        let phases = exchange.record.phases
        parts += phases.map { phase in
            let words = words(phase, of: phases)
            return "\(phase.name) \(text(phase.duration))" + (words.isEmpty ? "" : " (\(words))")
        }
        parts += exchange.record.wares.filter { $0.decision != .skipped }.map {
            "\($0.isResponse ? "← " : "")\($0.label.quotedUnlessToken) \(text($0.duration))"
        }
        return parts.joined(separator: ", ")
    }

    /// The attempt of the phase, if there were several, and the fault that ended it: `attempt 1, responseTimeout`.
    private static func words(_ phase: ExchangeRecord.Phase, of phases: [ExchangeRecord.Phase]) -> String {
        let isOfSeveral = phases.contains { $0.attempt > 1 }
        return [isOfSeveral ? "attempt \(phase.attempt)" : nil, phase.fault?.logged].compactMap(\.self)
            .joined(separator: ", ")
    }

    /// The time in milliseconds with three decimals.
    private static func text(_ nanoseconds: Int64) -> String {
        let microseconds = max(0, nanoseconds) / 1000
        let rest = String(microseconds % 1000)
        return "\(microseconds / 1000).\(String(repeating: "0", count: 3 - rest.utf8.count))\(rest)"
    }

    /// The label as a token, with `_` in place of invalid characters, because the name of a metric is a token.
    private static func token(_ label: String) -> String {
        String(String.UnicodeScalarView(label.unicodeScalars.map { HttpMethod(String($0)) == nil ? "_" : $0 }))
    }
}

extension String {
    fileprivate var quotedUnlessToken: String { HttpMethod(self) == nil ? quotedForErrors : self }
}

extension TimeLog: ConfigurableWare {
    public static let name: WareName = "timeLog"
    public static let chainPlace: ChainPlace? = .timing
    public static let about = WareAbout(
        "Logs how long each phase of an exchange and each ware took, with a warning for slow exchanges.",
        source: "W3C Server-Timing",
        example: #"""
            - timeLog: { slow: 500ms }
            """#,
        details: #"""
            The phases of each attempt are `queue` (waiting for a connection), `dns` (resolving the name), `connect`,
            `tls` (the handshake), `send` (the request), `firstByte` (waiting for the response) and `content`. `backoff`
            is the pause between two attempts. A phase that did not take place is left out. A phase that a fault ended
            is logged with the name of the fault. The lines go to the gateway's own log. `Server-Timing` contains the
            times known when the header section of the response is sent. It reveals the names of wares to clients.
            """#,
        otherNames: ["slowLog", "serverTiming"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "slow", into: &slow, in: .milliseconds(1) ... .seconds(86_400),
            doc: "duration above which an exchange is logged as a warning; all others are logged with level debug")
        options.read(
            "serverTiming", into: &serverTiming, doc: "adds the times to responses, in the field Server-Timing")
    }
}
