import Capturing
import HttpWare

extension AdminEndpoint {
    /// Repeats a captured request, with or without edits, as a new exchange that passes the whole chain.
    static func replay(_ subject: AdminSubject, _ store: CaptureStore) -> AdminEndpoint {
        AdminEndpoint(
            path: "/v1/captures/*/replay", access: .known, isWrite: true, mostContent: mostReplayed
        ) { request, exchange in
            let edits: RequestRepetition.Edits
            do throws(RequestRepetition.Refusal) {
                edits = try readEdits(request.content)
            } catch {
                return .abort(with: .problem(.badRequest, error.description))
            }
            let (argument, peer) = (request.argument, exchange.peer)
            return .wait { _, _ in
                .abort(with: await apart { await replay(argument, edits, peer, subject, store) })
            }
        }
    }

    /// Enough for 1 MiB of content in Base64, and for fields.
    private static let mostReplayed = 4 << 20

    private static func replay(
        _ id: Substring, _ edits: RequestRepetition.Edits, _ peer: SocketAddress?, _ subject: AdminSubject,
        _ store: CaptureStore
    ) async -> HttpResponse {
        guard let id = Int(id), let capture = store.find(id) else {
            return .problem(.notFound, "no capture with this id is kept")
        }
        do throws(RequestRepetition.Refusal) {
            let repetition = try RequestRepetition(capture, edits)
            guard let method = HttpMethod(repetition.method) else { throw .invalid("method is not a token") }
            let number = store.takeNumber()
            var order = ReplayedExchange.Order(
                mark: ReplayMark(id: number, original: id), method: method, url: repetition.target)
            order.fields = try fields(repetition.fields)
            order.content = repetition.content
            order.trailers = repetition.trailers.isEmpty ? nil : try fields(repetition.trailers)
            order.entry = capture.secrets?.entry
            order.peer = peer
            do throws(GatewayError) {
                try await subject.replay(order, capture.listener)
            } catch {
                throw .impossible(error.reason)
            }
            return .json(.object([("id", .text(String(number)))]))
        } catch {
            switch error {
            case .impossible(let text): return .problem(.conflict, text)
            case .invalid(let text): return .problem(.badRequest, text)
            }
        }
    }

    private static func fields(_ captured: [CapturedMessage.Field]) throws(RequestRepetition.Refusal) -> HttpFields {
        var fields = HttpFields()
        for field in captured {
            guard let name = FieldName(field.name) else {
                throw .invalid("\(field.name.quotedForErrors) is not the name of a field")
            }
            do throws(InvalidFieldValue) {
                try fields.append(name, raw: field.bytes)
            } catch {
                throw .invalid("the value of \(field.name) cannot be sent in a field")
            }
        }
        return fields
    }

    /// Reads `{method?, url?, headers?, body?}`. `body` is text, or Base64 with `"encoding": "base64"`.
    private static func readEdits(_ content: [UInt8]) throws(RequestRepetition.Refusal) -> RequestRepetition.Edits {
        var edits = RequestRepetition.Edits()
        if content.isEmpty { return edits }
        guard let json = try? JsonValue(content, rules: .lenient), let members = json.members else {
            throw .invalid("write a JSON object with any of the members method, url, headers, body")
        }
        let known = ["method", "url", "headers", "body", "encoding"]
        if let odd = members.first(where: { !known.contains($0.name) }) {
            throw .invalid("the member \(odd.name.quotedForErrors) is unknown; use \(known.joined(separator: ", "))")
        }
        func text(_ name: String) throws(RequestRepetition.Refusal) -> String? {
            guard let value = json[name], value != .null else { return nil }
            guard let text = value.string else { throw .invalid("\(name) is not a text") }
            return text
        }
        edits.method = try text("method")
        edits.url = try text("url")
        if let headers = json["headers"], headers != .null { edits.fields = try readFields(headers) }
        if let body = try text("body") {
            switch try text("encoding") {
            case nil, "": edits.content = Array(body.utf8)
            case "base64":
                guard let bytes = Base64.decode(Array(body.utf8)) else { throw .invalid("body is not base64") }
                edits.content = bytes
            default: throw .invalid("encoding is base64, or is left out")
            }
        }
        return edits
    }

    /// Reads `[{"name", "value"}]`, or an object whose values are strings or lists of strings.
    private static func readFields(_ json: JsonValue) throws(RequestRepetition.Refusal) -> [CapturedMessage.Field] {
        var fields: [CapturedMessage.Field] = []
        for line in json.elements ?? [] {
            guard let name = line["name"]?.string, let value = line["value"]?.string else {
                throw .invalid("headers is not a list of objects with name and value")
            }
            fields.append(CapturedMessage.Field(name, value))
        }
        for member in json.members ?? [] {
            for value in member.value.elements ?? [member.value] {
                guard let value = value.string else { throw .invalid("the value of \(member.name) is not a text") }
                fields.append(CapturedMessage.Field(member.name, value))
            }
        }
        guard json.elements != nil || json.members != nil else { throw .invalid("headers is not a list") }
        return fields
    }
}
