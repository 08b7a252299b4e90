import ArgumentParser
import Capturing
import GatewayConfig
import HttpWare

/// The tools for an assistant, each with its request to the admin listener.
struct McpTools {
    /// A tool.
    struct Tool: Sendable {
        let name: String
        let about: String
        var arguments: [Argument] = []
        /// Whether the tool sends requests or changes the gateway.
        var changes = false
        let call: @Sendable (McpTools, JsonValue) throws -> String

        var json: Json {
            .object([
                ("name", .text(name)), ("description", .text(about)),
                (
                    "inputSchema",
                    .object([
                        ("type", "object"), ("properties", .object(arguments.map { ($0.name, $0.json) })),
                        ("required", .list(arguments.filter(\.isRequired).map { .text($0.name) })),
                        ("additionalProperties", .bool(false)),
                    ])
                ),
                (
                    "annotations",
                    .object([("readOnlyHint", .bool(!changes)), ("openWorldHint", .bool(name == "replay_request"))])
                ),
            ])
        }
    }

    /// An argument of a tool.
    struct Argument: Sendable {
        let name: String
        /// The type in JSON Schema.
        var type = "string"
        var isRequired = false
        let about: String

        /// A text.
        init(_ name: String, isRequired: Bool = false, _ about: String) {
            self.init(name, "string", isRequired: isRequired, about)
        }

        init(_ name: String, _ type: String, isRequired: Bool = false, _ about: String) {
            self.name = name
            self.type = type
            self.isRequired = isRequired
            self.about = about
        }

        /// An id, as a text or as the number in it.
        static func id(_ about: String) -> Argument { Argument("id", "id", isRequired: true, about) }

        var json: Json {
            let types: Json = type == "id" ? .list(["string", "integer"]) : .text(type)
            return .object([("type", types), ("description", .text(about))])
        }

        func fits(_ value: JsonValue) -> Bool {
            switch (type, value) {
            case ("string", .string), ("object", .object), ("array", .array), ("boolean", .boolean), ("id", .string):
                true
            case ("integer", .number), ("id", .number):
                value.double.map { $0 == $0.rounded() } == true && value.whole != nil
            default: false
            }
        }
    }

    /// The result of a call.
    struct Outcome {
        let text: String
        let isError: Bool
    }

    /// The reason why a call failed, for the assistant.
    struct Failure: Error { let text: String }

    /// The tools that the assistant may use.
    let all: [Tool]
    private let makeClient: () throws -> AdminClient

    init(allowsChanges: Bool, client: @escaping () throws -> AdminClient) {
        all = McpTools.known.filter { allowsChanges || !$0.changes }
        makeClient = client
    }

    /// Calls a tool. A failure is returned as a result too.
    func call(_ tool: Tool, _ arguments: JsonValue) -> Outcome {
        do {
            for member in arguments.members ?? [] {
                guard let argument = tool.arguments.first(where: { $0.name == member.name }) else {
                    throw Failure(text: "there is no argument \(member.name.quotedForErrors)")
                }
                guard argument.fits(member.value) else {
                    throw Failure(text: "\(argument.name) is not of type \(argument.type)")
                }
            }
            for argument in tool.arguments where argument.isRequired && arguments[argument.name] == nil {
                throw Failure(text: "the argument \(argument.name) is missing")
            }
            return Outcome(text: try tool.call(self, arguments), isError: false)
        } catch let failure as Failure {
            return Outcome(text: failure.text, isError: true)
        } catch let failure as AdminClient.Failure {
            return Outcome(text: failure.description, isError: true)
        } catch {
            return Outcome(text: "the admin listener cannot be asked; name it with --admin", isError: true)
        }
    }

    // MARK: The admin listener

    /// Sends a request and returns the answer.
    func ask(_ method: HttpMethod, _ path: String, _ content: Json? = nil) throws -> [UInt8] {
        let answer = try makeClient().answer(method, path, content.map { Array($0.text.utf8) } ?? [])
        guard (200..<300).contains(answer.status) else { throw Failure(text: answer.problem) }
        return answer.content
    }

    func text(_ method: HttpMethod, _ path: String, _ content: Json? = nil) throws -> String {
        String(decoding: try ask(method, path, content), as: UTF8.self)
    }

    /// The id of a capture or a rule, as a segment of a path.
    static func id(_ arguments: JsonValue, _ name: String = "id") throws(Failure) -> String {
        var id = arguments[name]?.string ?? ""
        if case .number? = arguments[name], let whole = arguments[name]?.whole { id = String(whole) }
        guard !id.isEmpty, id.utf8.count <= 64,
            id.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) || $0 == 0x2d })
        else { throw Failure(text: "\(name) is not an id; list_requests tells ids") }
        return id
    }

    /// The longest text of an answer in bytes. An assistant cannot use more.
    static let longest = 1 << 20
}
