import Capturing
import GatewayConfig
import HttpGateway
import HttpWare

extension McpTools {
    private static let filterAbout = """
        A filter in mitmproxy's language, such as "~d example.com & ~c 500": ~u URL, ~d host, ~m method, ~c status, ~h header, ~b body, \
        ~t content type, ~e failed, ~dur >500ms, ~size >1MiB, ~route, ~service, ~ware, ~did; ! & | ( ).
        """

    static let known: [Tool] = [
        Tool(
            name: "list_requests",
            about: """
                Lists captured requests, the newest first, with id, time, method, URL, status and duration. A long search ends \
                early: where the result has next, give it as before to go on.
                """,
            arguments: [
                Argument("filter", filterAbout),
                Argument("limit", "integer", "The largest number of results, 1 to 1000; 50 by default."),
                Argument("before", "Only requests older than the one with this id."),
            ]
        ) { tools, arguments in
            let limit = arguments["limit"]?.whole ?? 50
            guard (1...1000).contains(limit) else { throw Failure(text: "limit is 1 to 1000") }
            let query = AdminQuery([
                ("filter", arguments["filter"]?.string), ("limit", String(limit)),
                ("before", arguments["before"]?.string),
            ])
            return try tools.text(.get, "/v1/captures" + query.text)
        },
        Tool(
            name: "get_request",
            about: """
                One captured request: the headers of request and response on both sides of the gateway, sizes, and what each \
                middleware did.
                """,
            arguments: [.id("The id of the request.")]
        ) { tools, arguments in try tools.text(.get, "/v1/captures/\(id(arguments))") },
        Tool(
            name: "get_content",
            about:
                "The decoded content of a captured request or response: text, or base64 where it is binary. In pieces, if it is long.",
            arguments: [
                .id("The id of the request."),
                Argument("of", "request or response; response by default."),
                Argument("side", "client or origin: the side of the gateway; client by default."),
                Argument("offset", "integer", "The first byte; 0 by default."),
                Argument("limit", "integer", "The largest number of bytes, 1 to 1048576; 65536 by default."),
            ]
        ) { tools, arguments in
            let of = arguments["of"]?.string ?? "response"
            let side = arguments["side"]?.string ?? "client"
            let (offset, limit) = (arguments["offset"]?.whole ?? 0, arguments["limit"]?.whole ?? 65_536)
            guard of == "request" || of == "response" else { throw Failure(text: "of is request or response") }
            guard side == "client" || side == "origin" else { throw Failure(text: "side is client or origin") }
            guard offset >= 0, (1...longest).contains(limit) else {
                throw Failure(text: "offset is 0 or more, and limit 1 to \(longest)")
            }
            let content = try tools.ask(.get, "/v1/captures/\(id(arguments))/\(of)/content?side=\(side)")
            let piece = Array(content.dropFirst(offset).prefix(limit))
            var members: [(String, Json)] = [
                ("size", .number(content.count)), ("offset", .number(min(offset, content.count))),
            ]
            if let text = String(validating: piece, as: UTF8.self) {
                members.append(("text", .text(text)))
            } else {
                members.append(("base64", .text(Base64.encode(piece))))
            }
            members.append(("more", .bool(offset < content.count && content.count - offset > piece.count)))
            return Json.object(members).text
        },
        Tool(
            name: "compare_requests",
            about: "The differences between two captured requests: method, URL, status, headers, content.",
            arguments: [
                Argument("a", "id", isRequired: true, "The id of the first request."),
                Argument("b", "id", isRequired: true, "The id of the second request."),
            ]
        ) { tools, arguments in
            let ids = [try id(arguments, "a"), try id(arguments, "b")]
            let captures = try ids.map { id in try JsonValue(try tools.ask(.get, "/v1/captures/\(id)"), rules: .lenient)
            }
            var contents: [String: [[UInt8]?]] = [:]
            for part in ["request", "response"] {
                contents[part] = ids.map { try? tools.ask(.get, "/v1/captures/\($0)/\(part)/content") }
            }
            return CaptureComparison(captures[0], captures[1], contents: contents).json.text
        },
        Tool(
            name: "export_har", about: "Captured requests as a HAR 1.2 archive. Credentials are masked.",
            arguments: [Argument("filter", filterAbout)]
        ) { tools, arguments in
            let text = try tools.text(.get, "/v1/har" + AdminQuery([("filter", arguments["filter"]?.string)]).text)
            guard text.utf8.count <= longest else {
                throw Failure(
                    text: "the archive has \(text.utf8.count) bytes, more than \(longest); use a narrower filter")
            }
            return text
        },
        Tool(
            name: "explain_url",
            about:
                "Explains the way of a request for a URL, step by step, without sending it: route, service, each middleware.",
            arguments: [
                Argument("url", isRequired: true, "The URL, absolute."), Argument("method", "GET by default."),
                Argument("headers", "array", "Header fields, as objects with name and value."),
            ]
        ) { tools, arguments in try tools.text(.post, "/v1/explain", Json(arguments)) },
        Tool(
            name: "check_configuration",
            about: "Checks the text of a gateway configuration in YAML: every error and warning, with line and column.",
            arguments: [Argument("text", isRequired: true, "The configuration.")]
        ) { _, arguments in
            let text = arguments["text"]?.string ?? ""
            return checked(text)
        },
        Tool(
            name: "replay_request",
            about:
                "Sends a captured request again, edited or not, through the gateway. Returns the id of the new request.",
            arguments: [
                .id("The id of the request."), Argument("method", "Another method."),
                Argument("url", "Another URL, absolute."),
                Argument("headers", "array", "All header fields, as objects with name and value."),
                Argument("body", "Other content, as text."),
            ], changes: true
        ) { tools, arguments in
            let edits = (arguments.members ?? []).filter { $0.name != "id" }.map { ($0.name, Json($0.value)) }
            return try tools.text(.post, "/v1/captures/\(id(arguments))/replay", .object(edits))
        },
        Tool(
            name: "add_rule",
            about:
                "Puts a middleware in force for a while on requests that match a filter, such as fault, throttle or mock.",
            arguments: [
                Argument("filter", isRequired: true, filterAbout),
                Argument("ware", isRequired: true, "The name of the middleware."),
                Argument("options", "object", "The options of the middleware."),
                Argument("for", isRequired: true, "How long, such as 10m; at most 24h."),
                Argument("count", "integer", "The largest number of requests."),
                Argument("reason", isRequired: true, "Why, for people who see it."),
            ], changes: true
        ) { tools, arguments in try tools.text(.post, "/v1/rules", Json(arguments)) },
        Tool(
            name: "remove_rule", about: "Ends a rule that add_rule put in force.",
            arguments: [.id("The id of the rule.")], changes: true
        ) { tools, arguments in
            let id = try id(arguments)
            _ = try tools.ask(.delete, "/v1/rules/\(id)")
            return "removed rule \(id)"
        },
    ]

    /// The errors and warnings of a configuration. It cannot include files, its options open none, and it sees no environment variables.
    private static func checked(_ text: String) -> String {
        let name = "httpware.yaml"
        let files = ConfigurationFiles(
            read: { path, _ throws(ConfigurationFiles.Fault) in
                guard path == name else { throw ConfigurationFiles.Fault("only the text itself is read here") }
                return Array(text.utf8)
            }, list: { _ in [] }, isOfMachine: false)
        let result = ConfigurationReader(
            wares: Program.allWares, stores: GatewayStores.all, environment: [:], files: files
        ).read(path: name)
        let diagnostics = result.errors.map { Json.text($0.description) }
        return Json.object([("ok", .bool(result.configuration != nil)), ("diagnostics", .list(diagnostics))]).text
    }
}
