import Foundation
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

/// Chosen members of JSON lines.
@Suite struct AccessLogMembersTests {
    private let folder: LogFolder

    init() throws { folder = try LogFolder() }

    private func lines(
        _ members: ConfigNode, _ more: [String: ConfigNode] = [:], before: [any Ware] = [], of request: HttpRequest,
        _ response: HttpResponse = HttpResponse(.ok)
    ) async throws -> [String] {
        var entries = [
            ConfigNode.Entry(
                key: "output", location: .code, value: ConfigNode(.scalar("file:\(folder.file("log"))", isQuoted: true))
            ),
            ConfigNode.Entry(key: "members", location: .code, value: members),
        ]
        entries += more.map { .init(key: $0.key, location: .code, value: $0.value) }
        let log = try TestExchange.make(AccessLog.self, ConfigNode(.map(entries)))
        let exchange = try TestExchange(before + [log])
        exchange.upstream.respond(with: response)
        _ = try await exchange.send(request)
        _ = LogWriter.shared.flush()
        return folder.lines("log")
    }

    @Test func `a line has the chosen members in their order, and nothing else`() async throws {
        let response = HttpResponse(
            .created, fields: ["X-Cache": "hit", "Set-Cookie": "a=secret"], content: .text("abc"))
        let lines = try await lines(
            [
                "status", "response.header.X-Cache", "method", "request.header.X-One", "response.header.Set-Cookie",
                "bytes", "response.header.X-None", "principal", "trace.id",
            ], of: .post("/a", fields: ["X-One": #"a"b"#]), response)
        #expect(
            lines == [
                #"{"status":201,"response.header.x-cache":"hit","method":"POST","request.header.x-one":"a\"b","#
                    + #""response.header.set-cookie":"…","bytes":3}"#
            ])
    }

    @Test func `the principal and the trace are members if there are any`() async throws {
        struct Naming: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                exchange.authenticated(as: Principal(method: "test", name: "joe"))
                return .pass
            }
        }
        let trace = "0af7651916cd43dd8448eb211c80319c"
        var fields = HttpFields()
        try fields.append("traceparent", "00-\(trace)-b7ad6b7169203331-01")
        let lines = try await lines(
            ["principal", "trace.id"], before: [Naming(), Traceparent()], of: .get("/", fields: fields))
        #expect(lines == [#"{"principal":"joe","traceId":"\#(trace)"}"#])
    }

    @Test func `a note of a ware is a member by its name, its last value`() async throws {
        struct Noting: Middleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
                exchange.note("a", as: "tenant")
                exchange.note("b\"\n", as: "tenant")
                for number in 0..<40 { exchange.note("\(number)", as: "n\(number)") }
                return .pass
            }
        }
        let lines = try await lines(
            ["note.tenant", "note.none", "note.n30", "note.n31"], before: [Noting()], of: .get("/"))
        #expect(lines == [#"{"note.tenant":"b\"\u000a","note.n30":"30"}"#])
    }

    @Test func `a member that no exchange has leaves an empty object`() async throws {
        #expect(try await lines(["response.header.X-None"], of: .get("/")) == ["{}"])
    }

    @Test func `a field that is there twice is one value`() async throws {
        var response = HttpResponse(.ok)
        for value in ["A", "B"] { try response.fields.append("Vary", value) }
        let lines = try await lines(["response.header.Link", "response.header.Vary"], of: .get("/"), response)
        #expect(lines == [#"{"response.header.vary":"A, B"}"#])
    }

    @Test func `mistakes in members are told`() throws {
        let mistakes: [[(String, ConfigNode)]] = [
            [("members", ["stauts"])], [("members", ["response.header."])], [("members", ["response.header.a b"])],
            [("members", [])], [("members", ["status"]), ("format", "combined")],
            [("members", ["status"]), ("fields", ["A"])], [("members", ["status"]), ("wares", true)],
            [("members", ConfigNode(.list(Array(repeating: "status", count: 65))))], [("framing", "lines")],
            [("output", "tcp:a:1"), ("framing", "octets")],
        ]
        for options in mistakes {
            let node = ConfigNode(.map(options.map { .init(key: $0.0, location: .code, value: $0.1) }))
            #expect(throws: ConfigError.self, "\(node.flow)") { try TestExchange.make(AccessLog.self, node) }
        }
    }
}
