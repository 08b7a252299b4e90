import Capturing
import HttpWare

extension AdminEndpoint {
    /// The captures: both sides of each message.
    static func captures(_ subject: AdminSubject) -> [AdminEndpoint] {
        guard let store = subject.captures else { return [] }
        let streams = StreamCount()
        return [
            AdminEndpoint(path: "/v1/captures", access: .known) { request, _ in list(request, store) },
            AdminEndpoint(path: "/v1/captures", access: .known, isDelete: true) { request, _ in
                filtered(request) { filter in
                    .json(.object([("deleted", .number(store.clear(filter: filter)))]))
                }
            },
            AdminEndpoint(path: "/v1/captures/events", access: .known) { request, _ in
                filtered(request) { filter in EventFeed.response(CaptureEvents(store, filter), streams) }
            },
            AdminEndpoint(path: "/v1/filter", access: .known) { request, _ in .abort(with: check(request)) },
            AdminEndpoint(path: "/v1/captures/*", access: .known) { request, _ in
                shown(request, store) { .json(CaptureJson.detail($0)) }
            },
            AdminEndpoint(path: "/v1/captures/*/request/content", access: .known) { request, _ in
                shown(request, store) { content(request, $0.request, origin: $0.sentRequest) }
            },
            AdminEndpoint(path: "/v1/captures/*/response/content", access: .known) { request, _ in
                shown(request, store) { content(request, $0.response, origin: $0.receivedResponse) }
            },
            AdminEndpoint(path: "/v1/captures/*/messages", access: .known) { request, _ in
                shown(request, store) { .json(.object([("messages", .list($0.messages.map(CaptureJson.message)))])) }
            },
            AdminEndpoint(path: "/v1/captures/*/pin", access: .known, isWrite: true) { request, _ in
                change(request, store, "pinned", { if case .boolean(let value) = $0 { value } else { nil } }) {
                    store.pin($0, $1)
                }
            },
            AdminEndpoint(path: "/v1/captures/*/comment", access: .known, isWrite: true) { request, _ in
                change(request, store, "comment", { $0.string.flatMap { $0.utf8.count <= 4096 ? $0 : nil } }) {
                    store.comment($0, $1)
                }
            },
            replay(subject, store),
        ] + archives(store)
    }

    /// How long a search runs before its results so far are shown.
    private static let patience = Duration.milliseconds(50)

    private static func list(_ request: AdminRequest, _ store: CaptureStore) -> Verdict {
        var limit = 100
        if let text = request.parameter("limit") {
            guard let number = Int(text), (1...1000).contains(number) else {
                return .abort(with: .problem(.badRequest, "limit is a number from 1 to 1000"))
            }
            limit = number
        }
        var before: Int?
        if let text = request.parameter("before") {
            guard let number = Int(text), number > 0 else {
                return .abort(with: .problem(.badRequest, "before is the id of a capture"))
            }
            before = number
        }
        let (most, last) = (limit, before)
        return filtered(request) { filter in
            let page = store.list(before: last, limit: most, filter: filter, until: .now + patience)
            return .json(
                .object(given: [
                    ("captures", .list(page.captures.map(CaptureJson.row))), ("more", .bool(page.next != nil)),
                    ("next", page.next.map { .text(String($0)) }), ("kept", .number(store.count)),
                    ("lost", store.lost > 0 ? .number(store.lost) : nil),
                ]))
        }
    }

    private static func readFilter(_ request: AdminRequest) throws(FilterFault) -> CaptureFilter? {
        guard let text = request.text("filter"), !text.isEmpty else { return nil }
        return try CaptureFilter(text)
    }

    /// The response to an invalid filter, with the column of the error, from 1.
    private static func refusal(_ fault: FilterFault) -> HttpResponse {
        var response = HttpResponse.json(
            .object([
                ("type", .text("about:blank")), ("title", .text("Bad Request")), ("status", .number(400)),
                ("detail", .text("\(fault)")), ("column", .number(fault.column)),
            ]))
        response.status = .badRequest
        response.fields.remove(.contentType as FieldName)
        response.fields.append(FieldLine(literal: .contentType, "application/problem+json"))
        return response
    }

    /// Answers with a filter from the query, on another thread.
    static func filtered(
        _ request: AdminRequest, _ answer: @escaping @Sendable (CaptureFilter?) -> HttpResponse
    ) -> Verdict {
        do throws(FilterFault) {
            let filter = try readFilter(request)
            return .wait { _, _ in .abort(with: await apart { answer(filter) }) }
        } catch {
            return .abort(with: refusal(error))
        }
    }

    /// Whether a filter is valid, and its mistake: a page asks it while a user writes, so a mistake is answered with 200, too.
    private static func check(_ request: AdminRequest) -> HttpResponse {
        do throws(FilterFault) {
            _ = try readFilter(request)
            return .json(.object([("valid", .bool(true))]))
        } catch {
            return .json(
                .object([
                    ("valid", .bool(false)), ("column", .number(error.column)), ("detail", .text(error.sentence)),
                ]))
        }
    }

    /// Answers with a capture; if the client asks for `secrets=true`, with the values that are masked otherwise.
    private static func shown(
        _ request: AdminRequest, _ store: CaptureStore, _ answer: @escaping @Sendable (CapturedExchange) -> HttpResponse
    ) -> Verdict {
        let secrets = request.parameter("secrets") ?? "false"
        guard secrets == "true" || secrets == "false" else {
            return .abort(with: .problem(.badRequest, "secrets is true or false"))
        }
        return found(request, store) { answer(secrets == "true" ? $0.revealed : $0) }
    }

    private static func found(
        _ request: AdminRequest, _ store: CaptureStore, _ answer: @escaping @Sendable (CapturedExchange) -> HttpResponse
    ) -> Verdict {
        guard let id = Int(request.argument) else { return .abort(with: missing) }
        return .wait { _, _ in .abort(with: await apart { store.find(id).map(answer) ?? missing }) }
    }

    private static let missing = HttpResponse.problem(.notFound, "no capture with this id is kept")

    /// Content as text or bytes, never as a page.
    private static func content(
        _ request: AdminRequest, _ client: CapturedMessage?, origin: CapturedMessage?
    ) -> HttpResponse {
        let side = request.parameter("side") ?? "client"
        guard side == "client" || side == "origin" else { return .problem(.badRequest, "side is client or origin") }
        guard let message = side == "client" ? client : origin else {
            return .problem(.notFound, "there is no message on this side")
        }
        let isRaw = request.parameter("raw") == "true"
        var response: HttpResponse
        let isText: Bool
        // Decoded content is made while it is read: what a reader does not take is not in memory.
        let measure = isRaw ? nil : DecodedPieces(message)?.measured()
        if let measure, measure.length > 0, let pieces = DecodedPieces(message) {
            response = HttpResponse(.ok, source: pieces, length: measure.length)
            isText = measure.isText
        } else {
            let bytes = isRaw ? message.content.kept : CaptureJson.decoded(message)
            isText = !isRaw && String(validating: bytes, as: UTF8.self) != nil && !bytes.contains(0)
            response = HttpResponse(.ok, content: .bytes(bytes))
        }
        response.fields.append(
            isText
                ? FieldLine(literal: .contentType, "text/plain; charset=utf-8")
                : FieldLine(literal: .contentType, "application/octet-stream"))
        return response
    }

    private static func change<Value: Sendable>(
        _ request: AdminRequest, _ store: CaptureStore, _ member: String, _ read: (JsonValue) -> Value?,
        _ change: @escaping @Sendable (Int, Value) -> Bool
    ) -> Verdict {
        guard let json = try? JsonValue(request.content), let member = json[member], let value = read(member) else {
            return .abort(with: .problem(.badRequest, "write a JSON object with the member \(member)"))
        }
        guard let id = Int(request.argument) else { return .abort(with: missing) }
        return .wait { _, _ in .abort(with: await apart { change(id, value) ? HttpResponse(.noContent) : missing }) }
    }
}
