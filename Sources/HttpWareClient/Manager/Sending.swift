import Credentials
import HttpWare
import Wares

/// One send: a request with its redirects, up to a successful response and its value.
///
/// The values are here and not in asynchronous functions: the frame of such a function has a place for each of its values,
/// and stays in memory as long as the request is under way. Functions that suspend hold references only; all else is in
/// functions that do not. Used by one task.
final class Sending<Response: Decodable & Sendable> {
    private let manager: HttpManager
    private let request: Request<Response>
    /// The most content that is kept in memory; `nil` streams the content.
    private let limit: Int?
    private let progress: (@Sendable (TransferProgress) -> Void)?
    private let began: LoopInstant
    private let isAwaited: Bool
    private var message: HttpRequest
    private var content: RequestContent
    private var timeouts: ExchangeTimeouts
    private var redirects = 0
    /// Why the last redirect is not followed, if it should be.
    private var obstacle: String?
    /// The last call, and its answer once there is one.
    private var call: ClientCall?
    private var answer: ClientCall.Answer?

    /// Throws if no message can be made of the request.
    init(
        _ request: Request<Response>, by manager: HttpManager, limit: Int?,
        _ progress: (@Sendable (TransferProgress) -> Void)?
    ) throws(HttpError) {
        self.manager = manager
        self.request = request
        self.limit = limit
        self.progress = progress
        do {
            message = try manager.maker.make(request)
        } catch {
            throw error.about(request.name)
        }
        content = request.content
        timeouts = request.timeouts
        began = manager.loops.now
        isAwaited = AwaitedWork.isCurrent
    }

    // MARK: Results

    /// Sends the request, and returns the value of the response.
    func model() async throws -> Response {
        try await run()
        return isLarge ? try await decodeElsewhere() : try decode()
    }

    /// The response of which `model` returned the value.
    @inline(never)
    func response(_ model: Response) throws(HttpError) -> ModelResponse<Response> {
        let answer = try taken()
        return ModelResponse(
            response: answer.response, model: model, responder: answer.responder, request: answer.request ?? message,
            asked: message, sent: content, record: answer.record)
    }

    /// Sends the request, and returns when the response's head has arrived.
    func stream() async throws -> StreamedResponse {
        try await run()
        return try streamed()
    }

    @inline(never)
    private func streamed() throws(HttpError) -> StreamedResponse {
        let answer = try taken()
        guard let call else { throw noAnswer }
        return StreamedResponse(
            answer.response, responder: answer.responder, content: call,
            failure: StreamFailure(
                route: request.name, request: answer.request ?? message, sent: content, response: answer.response),
            decoder: decoder)
    }

    // MARK: Exchanges

    private func run() async throws {
        repeat {
            if request.authentication == .required { try await readAccounts() }
            let call = try begin()
            do {
                try take(try await call.answer.value())
            } catch let error as CancellationError {
                call.abandon()
                throw error
            }
        } while try follows()
        guard isSuccess else { throw await failure() }
    }

    private func readAccounts() async throws {
        for credential in try core().credentials where !credential.knowsAccount { await credential.readAccount() }
    }

    @inline(never)
    private func core() throws(HttpError) -> ManagerCore {
        do { return try manager.core.get() } catch { throw error.about(request.name, message) }
    }

    @inline(never)
    private func begin() throws(HttpError) -> ClientCall {
        let order = ClientCall.Order(
            request: message, content: content,
            decodesContent: message.fields[.acceptEncoding] == DecodingFilter.accepted,
            about: ClientRequest(route: request.name, tags: request.tags, authentication: request.authentication),
            timeouts: timeouts, limit: limit, isAwaited: isAwaited, progress: progress)
        let core = try core()
        do {
            let begun = try manager.seats.start(order, core, on: manager.loops)
            call = begun
            return begun
        } catch {
            throw error.about(request.name, message)
        }
    }

    @inline(never)
    private func take(_ result: Result<ClientCall.Answer, HttpError>) throws(HttpError) {
        do {
            answer = try result.get()
        } catch {
            throw error.about(request.name, error.request ?? message, sending: content)
        }
    }

    /// Whether the response is a redirect that is followed: then the next message is ready.
    @inline(never)
    private func follows() throws(HttpError) -> Bool {
        let answer = try taken()
        let service = manager.service
        do throws(HttpError) {
            guard service.redirects.follows(answer.response, to: message) else { return false }
            guard let next = try manager.maker.redirected(message, content, by: answer.response) else {
                obstacle = RequestMaker.obstacle(answer.response)
                return false
            }
            guard redirects < service.redirects.most else {
                throw HttpError(
                    .upstream, .redirect, .checking, "the request was redirected more than \(redirects) times")
            }
            redirects += 1
            // The total time limit includes the redirects.
            if let total = request.timeouts.total ?? service.timeouts.total {
                let left = total - (manager.loops.now - began)
                guard left > .zero else {
                    throw HttpError(
                        GatewayError(.upstream, .responseTimeout, "the request took longer than \(total)"), .checking)
                }
                timeouts.total = left
            }
            call?.abandon()
            (message, content) = next
            return true
        } catch {
            call?.abandon()
            throw about(error)
        }
    }

    /// The request's own setting decides first, then a `StatusCheck`, then the service.
    private var isSuccess: Bool {
        guard let answer else { return false }
        return isAbsent
            || request.success?.contains(answer.response.status.code) ?? answer.isSuccess
                ?? manager.service.success.contains(answer.response.status.code)
    }

    /// Whether the response means that there is no value.
    private var isAbsent: Bool {
        guard let answer else { return false }
        return request.absent.contains(answer.response.status.code) && Response.self is any OptionalResponse.Type
    }

    /// The error for a response that is not a success, with its content.
    private func failure() async -> HttpError {
        guard var answer, let call else { return noAnswer }
        answer.response.content = .bytes(
            await call.rest(answer.response, upTo: manager.service.responseLimit.bytes))
        var failure = HttpError(unsuccessful: answer, because: obstacle)
        failure.decoder = decoder
        return about(failure, answer)
    }

    // MARK: Values

    private var decoder: any ModelDecoder { request.decoder ?? manager.service.decoder }

    /// Whether the content is long: then it is decoded away from the caller's actor.
    private var isLarge: Bool { answer?.response.content.bytes?.count ?? 0 >= 32 << 10 && !isAbsent }

    @inline(never)
    private func decode() throws(HttpError) -> Response {
        let answer = try taken()
        if isAbsent, let optional = Response.self as? any OptionalResponse.Type, let none = optional.absent as? Response
        {
            return none
        }
        do throws(HttpError) {
            return try ResponseMapper(decoder: decoder).map(answer.response.content.bytes ?? [], of: answer.response)
        } catch {
            throw about(error)
        }
    }

    private func decodeElsewhere() async throws(HttpError) -> Response {
        let answer = try taken()
        do throws(HttpError) {
            return try await Sending.decoded(ResponseMapper(decoder: decoder), answer.response)
        } catch {
            throw about(error)
        }
    }

    @concurrent
    private static func decoded(
        _ mapper: ResponseMapper, _ response: HttpResponse
    ) async throws(HttpError) -> Response {
        try mapper.map(response.content.bytes ?? [], of: response)
    }

    private func about(_ error: HttpError) -> HttpError { about(error, answer) }

    private func about(_ error: HttpError, _ answer: ClientCall.Answer?) -> HttpError {
        error.about(request.name, answer?.request ?? message, answer?.response, answer?.responder, sending: content)
    }

    private func taken() throws(HttpError) -> ClientCall.Answer {
        guard let answer else { throw noAnswer }
        return answer
    }

    /// For the compiler: there is an answer whenever one is asked for.
    private var noAnswer: HttpError {
        HttpError(.client, .exchange(.internalError), .checking, "there is no answer").about(request.name, message)
    }
}
