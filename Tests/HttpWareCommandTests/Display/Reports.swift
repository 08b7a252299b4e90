@testable import HttpWare

extension ExchangeReport {
    /// A report with every part: a hold, a replay, changes.
    static func full() -> ExchangeReport {
        ExchangeReport(
            id: "42", exchange: "019aa52c", time: "2026-11-21T05:20:11.123456Z", duration: 250, listener: "web",
            route: "api", service: "users", endpoint: "127.0.0.1:3000", client: "127.0.0.1", method: "GET",
            target: "/users/7?token=…", host: "example.com", protocol: "HTTP/1.1", status: 200, end: "completed",
            responder: "upstream", fault: nil, reason: nil, attempts: 2, replays: 1, reused: false, requestBytes: 0,
            responseBytes: 1500,
            phases: [
                Phase(phase: "dns", start: 200, duration: 0), Phase(phase: "connect", start: 200, duration: 10),
                Phase(phase: "send", start: 210, duration: 0.02),
                Phase(phase: "firstByte", start: 210.02, duration: 29.98),
                Phase(phase: "content", start: 240, duration: 10),
            ],
            wares: [
                ware("requestId", "request", "passed", 0, 0.01, added: ["X-Request-Id"]),
                ware("tokenRefresh", "request", "held 200ms behind refresh 7", 0.01, 199.9, decision: "held"),
                ware("rewrite", "request", "passed", 199.95, 0.01, removed: ["Cookie"], target: "/7"),
                ware("compress", "postware", "skipped", 240, 0, decision: "skipped"),
            ], cut: false)
    }

    static func ware(
        _ name: String, _ side: String, _ text: String, _ start: Double, _ duration: Double,
        decision: String = "passed",
        added: [String]? = nil, removed: [String]? = nil, target: String? = nil
    ) -> Ware {
        Ware(
            ware: name, side: side, attempt: 1, decision: decision, text: text, start: start, duration: duration,
            added: added, removed: removed, rewritten: nil, replacedFields: nil, method: nil, target: target,
            status: nil)
    }
}
