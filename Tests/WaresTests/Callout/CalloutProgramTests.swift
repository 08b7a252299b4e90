import Foundation
import HttpWareTesting
import Synchronization
import Testing

@testable import GatewayWares
@testable import HttpWare

/// Programs that a ware starts: real ones, in Python, in a folder of the test.
@Suite(.timeLimit(.minutes(10))) final class CalloutProgramTests: Sendable {
    private let folder: String

    init() throws {
        var template = Array("/tmp/httpware-callout-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    /// The lines of a log.
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
        let log = WareLog()

        init() {
            log.use(.debug) { [weak self] _, line in self?.all.withLock { $0.append(line) } }
        }

        func contain(_ text: String) -> Bool { all.withLock { $0.contains { $0.contains(text) } } }
    }

    /// A server in Python. `answer(message)` is an expression for the answers; `start` are lines before it listens.
    private func write(_ answer: String, start: String = "", after: String = "pass") throws {
        let text = """
            import json, os, signal, socket, sys, time
            from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
            open("pids", "a").write("%d\\n" % os.getpid())
            \(start)
            count = 0
            class Decide(BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"
                def log_message(self, *_): pass
                def do_POST(self):
                    global count
                    message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                    hello = message["half"] == "hello"
                    count += 0 if hello else 1
                    content = json.dumps(\(answer)).encode()
                    self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(content), content))
                    self.wfile.flush()
                    \(after)
            server = ThreadingHTTPServer(("", 0), Decide, bind_and_activate=False)
            server.socket = socket.socket(fileno=3)
            server.serve_forever()

            """
        try text.write(toFile: "\(folder)/decide.py", atomically: true, encoding: .utf8)
    }

    /// The processes that were started, in order.
    private var pids: [pid_t] {
        ((try? String(contentsOfFile: "\(folder)/pids", encoding: .utf8)) ?? "").split(separator: "\n").compactMap {
            pid_t($0)
        }
    }

    private func exchange(
        _ command: [String] = ["python3", "-B", "decide.py"], lines: Lines = Lines(), mode: Bool = false,
        timeout: Duration = .seconds(1), _ change: (inout CalloutProgram.Settings) -> Void = { _ in }
    ) throws -> (TestExchange, CalloutProgram) {
        var settings = CalloutProgram.Settings(command: command)
        settings.folder = folder
        settings.startTimeout = .seconds(60)
        settings.log = lines.log
        change(&settings)
        let caller = try #require(Callout.caller(settings, timeout: timeout, mostAnswer: .mebibytes(1)))
        let program = try #require(caller.program)
        return (try TestExchange([Callout(caller, mayWantResponses: true, failsOpen: mode)]), program)
    }

    private func get(_ path: String = "/") throws -> HttpRequest { try HttpRequest(.get, "http://a.example\(path)") }

    private func isAlive(_ pid: pid_t) -> Bool { kill(pid, 0) == 0 }

    // MARK: Life

    @Test func `a program is started once for all requests, and ends with its ware`() async throws {
        try write(#"{"set": {"X-Count": str(count)}} if not hello else {}"#)
        var (exchange, program): (TestExchange?, CalloutProgram?) = try self.exchange()
        program = nil
        for count in 1...3 {
            let answer = try await exchange?.send(try get())
            #expect(answer?.status == .ok)
            #expect(exchange?.upstream.requests.last?.fields["X-Count"] == "\(count)")
        }
        let pid = try #require(pids.first)
        #expect(pids.count == 1 && isAlive(pid))
        exchange = nil
        try await eventually { !self.isAlive(pid) }
        _ = program
    }

    @Test func `a ware that is not used starts nothing`() async throws {
        try write("{}")
        let options: ConfigNode = ["command": ["python3", "decide.py"]]
        var reader = OptionsReader(options, keyPath: "callout")
        let ware = Callout(options: &reader)
        #expect(reader.finish().isEmpty)
        #expect(ware.starter != nil && ware.holdsState)
        #expect(pids.isEmpty)
    }

    @Test func `the end of the gateway waits for the end of the program`() async throws {
        try write("{}", start: "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.2), os._exit(0)))")
        let (exchange, program) = try exchange()
        #expect(try await exchange.send(try get()).status == .ok)
        let pid = try #require(pids.first)
        await program.finish()
        #expect(!isAlive(pid))
        let after = try await exchange.send(try get())
        #expect(after.status == .internalServerError)
    }

    @Test func `the output of a program goes to the log`() async throws {
        try write("{}", start: "print('one', flush=True); print('two', file=sys.stderr, flush=True)")
        let lines = Lines()
        let (exchange, program) = try exchange(lines: lines)
        #expect(try await exchange.send(try get()).status == .ok)
        try await eventually { lines.contain("decide.py: one") && lines.contain("decide.py: two") }
        #expect(lines.contain("decide.py: started as process"))
        withExtendedLifetime(program) {}
    }

    @Test func `user information in the arguments of a program is not shown in its lines and reasons`() async throws {
        try write("{}", start: "print('one', flush=True)")
        let lines = Lines()
        let command = ["python3", "-B", "decide.py", "--url=http://user:pw123@h/"]
        let (exchange, program) = try exchange(command, lines: lines)
        #expect(try await exchange.send(try get()).status == .ok)
        try await eventually {
            lines.contain("--url=http://…@h/: one") && lines.contain("--url=http://…@h/: started as process")
        }
        await program.finish()
        #expect(!lines.contain("pw123") && !program.name.contains("pw123"))
    }

    @Test func `a program has its socket, and nothing else of the gateway`() async throws {
        try write(
            #"{"notes": {}, "respond": {"status": 200, "content": {"text": found}}} if not hello else {}"#,
            start:
                "found = json.dumps([sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4], len(os.listdir('/proc/self/fd')), os.environ['HTTPWARE_CALLOUT_FD'], os.getpgrp() == os.getpid(), signal.getsignal(signal.SIGTERM) == signal.SIG_DFL])"
        )
        let (exchange, program) = try exchange()
        let answer = try await exchange.send(try get())
        // One more is the folder itself that Python lists.
        #expect(
            String(decoding: answer.content.bytes ?? [], as: UTF8.self) == #"[[0, 1, 2, 3], 5, "3", true, true]"#)
        withExtendedLifetime(program) {}
    }

    // MARK: Trouble

    @Test func `a program that ends after each answer is started again, and no request is lost`() async throws {
        try write("{}", after: "os._exit(0) if not hello else None")
        let (exchange, program) = try exchange(timeout: .seconds(60))
        for _ in 0..<4 { #expect(try await exchange.send(try get()).status == .ok) }
        #expect(pids.count >= 4)
        withExtendedLifetime(program) {}
    }

    @Test func `a program that was killed is started again`() async throws {
        try write("{}")
        let lines = Lines()
        let (exchange, program) = try exchange(lines: lines, timeout: .seconds(60))
        #expect(try await exchange.send(try get()).status == .ok)
        kill(try #require(pids.first), SIGKILL)
        try await eventually { lines.contain("ended with signal 9") }
        #expect(try await exchange.send(try get()).status == .ok)
        #expect(pids.count == 2)
        withExtendedLifetime(program) {}
    }

    /// Sends a request, and lets the time of a call pass until it is answered.
    private func send(_ exchange: TestExchange) async throws -> HttpResponse {
        let pending = await exchange.start(try get())
        let answer = Task { try await pending.response() }
        let isAnswered = Mutex(false)
        let watch = Task {
            _ = await answer.result
            isAnswered.withLock { $0 = true }
        }
        try await eventually {
            await exchange.advance(by: .milliseconds(300))
            return isAnswered.withLock { $0 }
        }
        await watch.value
        return try await answer.value
    }

    @Test func `a program that always ends fails its requests only`() async throws {
        try write("{}", start: "sys.exit(3)")
        let lines = Lines()
        let (exchange, program) = try exchange(lines: lines)
        #expect(try await send(exchange).status == .serviceUnavailable)
        try await eventually { lines.contain("ended with status 3") && self.pids.count > 2 }
        let (open, other) = try self.exchange(mode: true)
        #expect(try await send(open).status == .ok)
        #expect(open.upstream.requests.count == 1)
        withExtendedLifetime((program, other)) {}
    }

    @Test func `a program that does not exist fails its requests`() async throws {
        let lines = Lines()
        let (exchange, program) = try exchange(["./nothing"], lines: lines)
        #expect(try await send(exchange).status == .serviceUnavailable)
        try await eventually { lines.contain("./nothing: cannot be started") }
        withExtendedLifetime(program) {}
    }

    @Test func `a program that hangs at its start is killed and started again`() async throws {
        try write("{}", start: "if len(open('pids').read().split()) == 1: time.sleep(600)")
        let lines = Lines()
        let (exchange, program) = try exchange(lines: lines, timeout: .seconds(3600)) {
            $0.startTimeout = .milliseconds(500)
        }
        program.start()
        try await eventually { lines.contain("no first answer") }
        program.start()
        try await eventually { self.pids.count > 1 }
        // On a busy machine, the start may take longer than its time more than once.
        #expect(try await exchange.send(try get()).status == .ok)
        #expect(!isAlive(try #require(pids.first)))
    }

    @Test func `a program that cannot work says why`() async throws {
        try write(#"{"error": "no such header"} if hello else {}"#)
        let lines = Lines()
        let (exchange, program) = try exchange(lines: lines)
        #expect(try await exchange.send(try get()).status == .internalServerError)
        #expect(lines.contain("no such header"))
        #expect(pids.count == 1)
        withExtendedLifetime(program) {}
    }

    @Test func `a wrong first answer fails the requests`() async throws {
        try write(#"{"halves": 1} if hello else {}"#)
        let (exchange, program) = try exchange()
        #expect(try await exchange.send(try get()).status == .internalServerError)
        withExtendedLifetime(program) {}
    }

    @Test func `the first answer chooses halves and content`() async throws {
        try write(
            #"{"request": False, "response": True, "content": {"response": "1KiB"}} if hello else {"content": {"text": message["response"]["content"]["text"].upper() + options}}"#,
            start: "options = ''"
        )
        let (exchange, program) = try exchange()
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("hello")))
        for _ in 0..<2 {
            let answer = try await exchange.send(try get())
            #expect(String(decoding: answer.content.bytes ?? [], as: UTF8.self) == "HELLO")
        }
        withExtendedLifetime(program) {}
    }

    @Test func `content of the first request is there, too`() async throws {
        try write(
            #"{"content": {"request": "1KiB"}} if hello else {"set": {"X-Seen": message["request"]["content"]["text"]}}"#
        )
        let (exchange, program) = try exchange()
        let request = try HttpRequest(.post, "http://a.example/", content: .text("hello"))
        #expect(try await exchange.send(request).status == .ok)
        #expect(exchange.upstream.requests.first?.fields["X-Seen"] == "hello")
        withExtendedLifetime(program) {}
    }

    @Test func `a program gets the options of the ware`() async throws {
        try write(
            #"{"set": {"X-A": seen[0]}} if not hello else seen.append(message["options"]["a"]["b"]) or {}"#,
            start: "seen = []")
        let (exchange, program) = try exchange { $0.options = .object([("a", .object([("b", "c")]))]) }
        #expect(try await exchange.send(try get()).status == .ok)
        #expect(exchange.upstream.requests.first?.fields["X-A"] == "c")
        withExtendedLifetime(program) {}
    }

    // MARK: Addons

    @Test func `an addon of mitmproxy changes requests and responses`() async throws {
        let addon = """
            from mitmproxy import http, ctx

            class Tenants:
                def load(self, loader):
                    loader.add_option("prefix", str, "t-", "Begins the name of a tenant")

                def request(self, flow):
                    flow.request.headers["X-Tenant"] = ctx.options.prefix + flow.request.pretty_host.split(".")[0]
                    if flow.request.path.startswith("/private"):
                        flow.response = http.Response.make(403, b"private", {"X-By": "addon"})

                def response(self, flow):
                    flow.response.text = flow.response.text.upper()

            addons = [Tenants()]

            """
        try addon.write(toFile: "\(folder)/addon.py", atomically: true, encoding: .utf8)
        let configuration = SourceLocation(file: "\(folder)/httpware.yaml", line: 1, column: 1)
        let node = ConfigNode(
            .map([
                .init(
                    key: "mitmproxy", location: configuration,
                    value: ConfigNode(.scalar("addon.py", isQuoted: true), at: configuration)),
                .init(key: "options", location: configuration, value: ["prefix": "x-"]),
                .init(key: "startTimeout", location: configuration, value: "60s"),
            ]), at: configuration)
        let exchange = try TestExchange(Callout.self, options: node)
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("hello")))
        let answer = try await exchange.send(try HttpRequest(.get, "http://acme.example.com/"))
        #expect(String(decoding: answer.content.bytes ?? [], as: UTF8.self) == "HELLO")
        #expect(exchange.upstream.requests.first?.fields["X-Tenant"] == "x-acme")
        let refused = try await exchange.send(try HttpRequest(.get, "http://acme.example.com/private"))
        #expect(refused.status == .forbidden && refused.fields["X-By"] == "addon")
        #expect(exchange.upstream.requests.count == 1)
    }

    // MARK: The article

    private static let article: String = {
        let root = URL(filePath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return
            (try? String(
                contentsOf: root.appending(path: "Sources/HttpGateway/HttpGateway.docc/Callouts.md"), encoding: .utf8))
            ?? ""
    }()

    /// The blocks of the article in one language.
    static func blocks(_ language: String) -> [String] {
        article.components(separatedBy: "\n```\(language)\n").dropFirst().compactMap {
            $0.components(separatedBy: "\n```\n").first
        }
    }

    /// A program of the article, and its exchange; `nil` if the machine lacks its language.
    private func example(_ language: String, _ command: [String]) throws -> (TestExchange, CalloutProgram)? {
        let text = try #require(Self.blocks(language).first { $0.contains("decide.") })
        #expect(text.split(separator: "\n").count < 20)
        try text.write(toFile: "\(folder)/\(command.last ?? "")", atomically: true, encoding: .utf8)
        let tool = language == "sh" ? "socat" : command[0]
        let paths = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        guard paths.contains(where: { access("\($0)/\(tool)", X_OK) == 0 }) else { return nil }
        return try exchange(command)
    }

    @Test func `the example in Python names tenants`() async throws {
        let (exchange, program) = try #require(try example("python", ["python3", "decide.py"]))
        #expect(try await exchange.send(try HttpRequest(.get, "http://acme.example.com/")).status == .ok)
        #expect(exchange.upstream.requests.first?.fields["X-Tenant"] == "acme")
        #expect(try await exchange.send(try HttpRequest(.get, "http://www.example.com/")).status == .notFound)
        withExtendedLifetime(program) {}
    }

    @Test func `the example in JavaScript adds Cache-Control`() async throws {
        guard let (exchange, program) = try example("js", ["node", "decide.mjs"]) else { return }
        let first = try await exchange.send(try get())
        #expect(first.fields[.cacheControl] == "no-store")
        exchange.upstream.always(respondWith: HttpResponse(.ok, fields: ["Cache-Control": "public"]))
        #expect(try await exchange.send(try get()).fields[.cacheControl] == "public")
        withExtendedLifetime(program) {}
    }

    @Test func `the example in a shell hides a part of the site`() async throws {
        guard try example("sh", ["sh", "decide.sh"]) != nil else { return }
        // The socket's path is that of the test: `sh decide.sh` alone has none.
        let path = "\(folder)/decide.sock"
        let socat = Process()
        socat.executableURL = URL(filePath: "/bin/sh")
        socat.arguments = ["decide.sh", path]
        socat.currentDirectoryURL = URL(filePath: folder)
        // It would hold the output of the tests open, and may have inherited a mask that blocks SIGTERM.
        socat.standardOutput = FileHandle.nullDevice
        socat.standardError = FileHandle.nullDevice
        try socat.run()
        defer { kill(socat.processIdentifier, SIGKILL) }
        try await eventually { access(path, F_OK) == 0 }
        let exchange = try TestExchange(Callout.self, options: ["url": "unix:\(path)"])
        #expect(try await exchange.send(try get("/admin/users")).status == .forbidden)
        #expect(try await exchange.send(try get("/orders")).status == .ok)
    }
}
