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
                phase("dns", 200, 0), phase("connect", 200, 10), phase("send", 210, 0.02),
                phase("firstByte", 210.02, 29.98), phase("content", 240, 10),
            ],
            wares: [
                ware("requestId", "request", "passed", 0, 0.01, added: ["X-Request-Id"]),
                ware("tokenRefresh", "request", "held 200ms behind refresh 7", 0.01, 199.9, decision: "held"),
                ware("rewrite", "request", "passed", 199.95, 0.01, removed: ["Cookie"], target: "/7"),
                ware("compress", "postware", "skipped", 240, 0, decision: "skipped"),
            ], cut: false)
    }

    static func phase(
        _ name: String, _ start: Double, _ duration: Double, attempt: Int = 1, endpoint: String? = "127.0.0.1:3000",
        fault: String? = nil
    ) -> Phase {
        Phase(phase: name, attempt: attempt, endpoint: endpoint, start: start, duration: duration, fault: fault)
    }

    /// A report of two attempts: the first has no response, then a pause, then one by another endpoint.
    static func ofTwoAttempts() -> ExchangeReport {
        var report = full()
        report.wares = []
        report.phases = [
            phase("connect", 0, 2, endpoint: "127.0.0.1:3001"), phase("tls", 2, 3, endpoint: "127.0.0.1:3001"),
            phase("firstByte", 5, 95, endpoint: "127.0.0.1:3001", fault: "responseTimeout"),
            phase("backoff", 100, 50, attempt: 2, endpoint: nil), phase("firstByte", 150, 60, attempt: 2),
            phase("content", 210, 40, attempt: 2),
        ]
        return report
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
