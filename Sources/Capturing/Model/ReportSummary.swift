public import HttpWare

/// The part of a record that filters need: the responder, and each ware's decision.
public struct ReportSummary: Sendable, Equatable {
    public var responder: String
    /// The result of the cache; `nil` if no cache saw the request.
    public var cache: String?
    /// Whether the request was sent inward again.
    public var isReplayed: Bool
    /// How the exchange ended.
    public var end: String
    /// The number of upstream connections that were used.
    public var attempts = 1
    /// The wares with their decisions, in the order in which they ran.
    public var wares: [Decision]

    /// The decision of one ware.
    public struct Decision: Sendable, Equatable {
        public var ware: String
        public var decision: String

        public init(ware: String, decision: String) {
            self.ware = ware
            self.decision = decision
        }
    }

    public init(responder: String, cache: String?, isReplayed: Bool, end: String, wares: [Decision]) {
        self.responder = responder
        self.cache = cache
        self.isReplayed = isReplayed
        self.end = end
        self.wares = wares
    }

    /// The summary of a record.
    init(_ recorded: RecordedExchange) {
        self.init(
            responder: recorded.responderName, cache: recorded.cacheName, isReplayed: recorded.record.replays > 0,
            end: recorded.endName,
            wares: recorded.record.decisions.map { Decision(ware: $0.ware, decision: $0.decision) })
        attempts = recorded.record.attempts
    }

    /// The summary of a report.
    public init(_ report: ExchangeReport) {
        self.init(
            responder: report.responder, cache: report.cache, isReplayed: report.replays > 0, end: report.end,
            wares: report.wares.map { Decision(ware: $0.ware, decision: $0.decision) })
        attempts = report.attempts
    }
}

/// The record of an exchange beside its capture: as the loop kept it, or as texts from an archive.
final class CapturedRecord: Sendable {
    enum Form: Sendable {
        case recorded(RecordedExchange)
        case report(ExchangeReport)
        /// A record on a disk, which is read when it is needed.
        case unread(@Sendable () -> ExchangeReport?)
    }

    private let form: Form

    init(_ form: Form) { self.form = form }

    /// The report; `nil` if it cannot be read.
    var report: ExchangeReport? {
        switch form {
        case .recorded(let recorded): ExchangeReport(recorded)
        case .report(let report): report
        case .unread(let read): read()
        }
    }

    var summary: ReportSummary? {
        switch form {
        case .recorded(let recorded): ReportSummary(recorded)
        case .report(let report): ReportSummary(report)
        case .unread(let read): read().map { ReportSummary($0) }
        }
    }

    /// The approximate memory in bytes.
    var memory: Int {
        switch form {
        case .recorded(let recorded): recorded.bytes
        case .report(let report): 512 + 256 * (report.phases.count + report.wares.count)
        case .unread: 2048
        }
    }
}
