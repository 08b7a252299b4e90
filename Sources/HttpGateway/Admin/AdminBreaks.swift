import Capturing
import HttpWare
import GatewayWares

extension AdminEndpoint {
    /// The messages that `break` holds.
    static func breaks() -> [AdminEndpoint] {
        let held = HeldMessages.shared
        return [
            AdminEndpoint(path: "/v1/breaks", access: .known) { _, _ in
                .abort(with: .json(.object([("breaks", .list(held.all.map(json)))])))
            },
            AdminEndpoint(path: "/v1/breaks/*/resume", access: .known, isWrite: true) { request, _ in
                .abort(with: resume(request, held))
            },
            AdminEndpoint(path: "/v1/breaks/*/abort", access: .known, isWrite: true) { request, _ in
                guard let message = find(request, held), message.abort() else { return .abort(with: gone) }
                return .abort(with: .json(.object([("id", .text(String(message.id)))])))
            },
        ]
    }

    private static let gone = HttpResponse.problem(.notFound, "no message with this id is held")

    private static func find(_ request: AdminRequest, _ held: HeldMessages) -> HeldMessage? {
        Int(request.argument).flatMap(held.find)
    }

    private static func json(_ message: HeldMessage) -> Json {
        .object([
            ("id", .text(String(message.id))), ("capture", .optional(message.capture.map(String.init))),
            ("side", .text(message.side.rawValue)), ("method", .text(message.method)), ("url", .text(message.url)),
            ("status", message.status.map(Json.number) ?? .null), ("since", .text(message.since.rfc3339)),
            ("headers", .list(message.fields.map { .object([("name", .text($0.name)), ("value", .text($0.value))]) })),
            ("bodyEditable", .bool(message.isContentEditable)),
        ])
    }

    private static func resume(_ request: AdminRequest, _ held: HeldMessages) -> HttpResponse {
        guard let message = find(request, held) else { return gone }
        do throws(MessageEdit.Mistake) {
            let edit = request.content.isEmpty ? nil : try read(request.content)
            guard try message.resume(edit) else { return gone }
            return .json(.object([("id", .text(String(message.id)))]))
        } catch {
            return .problem(
                error.isForbidden ? .forbidden : error.isConflict ? .conflict : .badRequest, error.sentence)
        }
    }

    /// Reads `{method?, url?, status?, headers?, body?}`; `encoding` is `base64` for a body that is not text. `nil` if the edit
    /// changes nothing.
    private static func read(_ content: [UInt8]) throws(MessageEdit.Mistake) -> MessageEdit? {
        guard let json = try? JsonValue(content), let members = json.members else {
            throw MessageEdit.Mistake(sentence: "write a JSON object with method, url, status, headers or body")
        }
        var edit = MessageEdit()
        for member in members {
            let value = member.value
            switch (member.name, value) {
            case (_, .null): continue
            case ("method", .string(let text)): edit.method = text
            case ("url", .string(let text)): edit.url = text
            case ("status", .number(let digits)):
                edit.status = Int(digits) ?? 0
            case ("headers", .array(let elements)):
                var fields: [CapturedMessage.Field] = []
                for element in elements {
                    guard let name = element["name"]?.string, let value = element["value"]?.string else {
                        throw MessageEdit.Mistake(sentence: "headers is a list of objects with name and value")
                    }
                    fields.append(CapturedMessage.Field(name, value))
                }
                edit.fields = fields
            case ("headers", .object(let pairs)):
                var fields: [CapturedMessage.Field] = []
                for pair in pairs {
                    guard let value = pair.value.string else {
                        throw MessageEdit.Mistake(sentence: "headers is a list of objects with name and value")
                    }
                    fields.append(CapturedMessage.Field(pair.name, value))
                }
                edit.fields = fields
            case ("body", .string(let text)):
                if json["encoding"]?.string == "base64" {
                    guard let bytes = Base64.decode(Array(text.utf8)) else {
                        throw MessageEdit.Mistake(sentence: "body is not base64")
                    }
                    edit.body = bytes
                } else {
                    edit.body = Array(text.utf8)
                }
            case ("encoding", .string("base64")): continue
            default:
                throw MessageEdit.Mistake(
                    sentence:
                        "\(member.name.quotedForErrors) is unknown or malformed; use method, url, status, headers and body"
                )
            }
        }
        return members.isEmpty ? nil : edit
    }
}
