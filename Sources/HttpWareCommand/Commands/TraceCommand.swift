import ArgumentParser
import FoundationEssentials
import Glibc
import HttpWare

/// `httpware trace`: the steps of a running gateway's requests.
struct TraceCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "trace", abstract: "Show the last requests of a running gateway, or one of them step by step.",
        discussion: """
            Without ID, shows one line for each of the last requests, the newest last. With -f, new requests follow until \
            the command is interrupted. With ID, the first column of these lines, shows each ware with its decision, time and \
            changes, and each phase of the call upstream.

            --filter selects requests in mitmproxy's language, such as '~d example.com & ~c 404'. The gateway must capture \
            requests for it: admin.capture in its configuration.

            --secrets adds the target and the fields of the request with ID and of its response, with the values that are \
            masked otherwise, as long as the gateway keeps them in memory.
            """)

    @Argument(help: "The number of a request, or the id that requestId gave it.")
    var id: String?
    @Flag(name: .shortAndLong, help: "Continue with new requests when they end; with ID, wait for that request.")
    var follow = false
    @Option(help: "The number of past requests to show.")
    var limit = 20
    @Option(help: ArgumentHelp("Only requests that match this filter.", valueName: "filter"))
    var filter: String?
    @Flag(help: "Print JSON, one object per line.")
    var json = false
    @Flag(help: "With ID, also print the target and the fields with their masked values.")
    var secrets = false
    @OptionGroup var admin: AdminOption

    func validate() throws {
        if secrets, id == nil || json {
            throw ValidationError("--secrets is for one request: write ID, without --json")
        }
        if !(0...2000).contains(limit) { throw ValidationError("--limit is 0 to 2000") }
        if id != nil, filter != nil { throw ValidationError("--filter is for lists; leave ID or --filter out") }
        if let id, !TraceCommand.isId(id) { throw ValidationError("\(id) is not an id") }
    }

    func run() throws {
        let client = try admin.client()
        if let id { return try show(id, client) }
        let output = TraceOutput(json: json)
        let path = "/v1/requests" + AdminQuery([("limit", String(max(limit, 1))), ("filter", filter)]).text
        let events = "/v1/events" + AdminQuery([("filter", filter)]).text
        let count = limit
        var shown: Set<String> = []
        func list(_ answer: AdminClient.Answer) throws {
            for report in try TraceCommand.decode([ExchangeReport].self, answer).prefix(count).reversed() {
                try output.line(report)
                shown.insert(report.id)
            }
        }
        guard follow else { return try list(client.get(path)) }
        try client.follow(events, after: path) { answer in
            try list(answer)
            return true
        } _: { event, data in
            guard let report = try TraceCommand.exchange(event, data), !shown.contains(report.id) else { return true }
            try output.line(report)
            return true
        }
    }

    private func show(_ id: String, _ client: AdminClient) throws {
        let output = TraceOutput(json: json)
        /// Prints the exchange; returns false if the gateway does not keep it.
        func show(_ answer: AdminClient.Answer) throws -> Bool {
            if answer.status == 404 { return false }
            let report = try TraceCommand.decode(ExchangeReport.self, answer)
            try output.whole(report)
            if secrets { try showSecrets(report.id, client) }
            return true
        }
        let path = "/v1/requests/\(id)"
        guard follow else {
            if try show(client.get(path)) { return }
            Terminal.error("request \(id) is not kept, or no longer kept; \(Program.name) trace lists the kept ones")
            throw ExitCode(1)
        }
        try client.follow("/v1/events", after: path) {
            try !show($0)
        } _: { event, data in
            guard let report = try TraceCommand.exchange(event, data), report.id == id || report.exchange == id else {
                return true
            }
            try output.whole(report)
            if secrets { try showSecrets(report.id, client) }
            return false
        }
    }

    /// Prints what the client sent and got, with the values that the gateway has in memory.
    private func showSecrets(_ id: String, _ client: AdminClient) throws {
        let answer = try client.get("/v1/captures/\(id)?secrets=true")
        guard answer.status != 404 else {
            Terminal.error("request \(id) is not captured; --secrets needs admin.capture in the configuration")
            throw ExitCode(1)
        }
        let capture = try TraceCommand.decode(RevealedCapture.self, answer)
        let style = TerminalStyle.plain
        var lines = ["", "> \(style.shown(capture.method)) \(style.shown(capture.url))"]
        for (mark, message) in [(">", capture.request.client), ("<", capture.response.client)] {
            for field in message?.headers ?? [] {
                lines.append("\(mark) \(style.shown(field.name)): \(style.shown(field.value))")
            }
        }
        try Terminal.result(lines.joined(separator: "\n"))
    }

    /// True if the text needs no encoding as a segment of a path.
    private static func isId(_ id: String) -> Bool {
        !id.isEmpty && id.utf8.count <= 256
            && id.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
                default: "-._~:+=".utf8.contains(byte)
                }
            }
    }

    /// The exchange of an event. For another event it is `nil`, and a message is printed.
    private static func exchange(_ event: String, _ data: String) throws -> ExchangeReport? {
        switch event {
        case "", "message", "exchange":
            return try JSONDecoder().decode(ExchangeReport.self, from: Data(data.utf8))
        case "lost":
            struct Lost: Decodable { let lost: Int }
            if let lost = try? JSONDecoder().decode(Lost.self, from: Data(data.utf8)).lost {
                Terminal.error("\(lost) requests are not captured, because pinned ones fill the memory")
            }
            return nil
        case "dropped":
            struct Dropped: Decodable { let dropped: Int }
            if let dropped = try? JSONDecoder().decode(Dropped.self, from: Data(data.utf8)).dropped {
                Terminal.error("\(dropped) requests are not shown, because they came too fast")
            }
            return nil
        default: return nil
        }
    }

    private static func decode<Value: Decodable>(_ type: Value.Type, _ answer: AdminClient.Answer) throws -> Value {
        guard answer.status == 200, let value = try? JSONDecoder().decode(type, from: Data(answer.content)) else {
            throw answer.status < 400 ? strange(answer) : answer.refusal
        }
        return value
    }

    private static func strange(_ answer: AdminClient.Answer) -> ExitCode {
        let shown = TerminalStyle.plain.shown(String(answer.text.prefix(200)))
        Terminal.error("the admin listener answered \(answer.status), but not with records: \(shown)")
        return ExitCode(1)
    }
}

/// The part of a capture that `trace --secrets` shows.
private struct RevealedCapture: Decodable {
    struct Field: Decodable {
        let name: String
        let value: String
    }
    struct Message: Decodable { let headers: [Field] }
    struct Half: Decodable { let client: Message? }

    let method: String
    let url: String
    let request: Half
    let response: Half
}

/// Standard output of `trace`.
struct TraceOutput {
    let json: Bool
    private let style = TerminalStyle(STDOUT_FILENO)

    init(json: Bool) { self.json = json }

    /// Prints the exchange as one line.
    func line(_ report: ExchangeReport) throws {
        try Terminal.result(json ? report.json : ExchangeLine(style: style, showsId: true).text(report))
    }

    /// Prints the exchange step by step.
    func whole(_ report: ExchangeReport) throws {
        try Terminal.result(
            json ? report.json : Waterfall(style: style).text(report), end: json ? "\n" : "")
    }
}
