import Wares
import HttpWare

/// One exchange of a client: the request with its content, and the response as a whole or as a stream.
///
/// Unchecked: the mutable state is used on the loop only. Other threads use only `answer` and `pipe`, which are thread-safe.
final class ClientCall: LocalExchangeReceiver, @unchecked Sendable {
    /// The facts that are known when the response, or its head, has arrived.
    struct Answer: Sendable {
        var response: HttpResponse
        let responder: Responder
        /// The result of `StatusCheck`; `nil` without that ware.
        let isSuccess: Bool?
        var record: ExchangeRecord
        /// Why there was no token; `nil` if there was one, or none was needed.
        let problem: CredentialProblem?
        /// Why a ware answered in place of the origin server, if it said so.
        let cause: GatewayError?
        /// Set if a ware wanted to send the request again, and could not.
        let notRepeatable: NotRepeatable?
        /// The request as it went upstream.
        let request: HttpRequest?
    }

    /// The input of a call.
    struct Order: Sendable {
        let request: HttpRequest
        let content: RequestContent
        /// Whether the response's content is decoded.
        let decodesContent: Bool
        let about: ClientRequest
        let timeouts: ExchangeTimeouts
        /// The most content that is kept in memory; `nil` streams the content.
        let limit: Int?
        /// Whether other requests wait for this one, so that it must not wait for a connection of theirs.
        let isAwaited: Bool
        let progress: (@Sendable (TransferProgress) -> Void)?
    }

    /// Marks an exchange for which others wait.
    enum IsAwaited: ExchangeKey { typealias Value = Bool }

    let answer = LoopWait<Result<Answer, HttpError>>()
    /// The response's content, if it is streamed.
    let pipe: ContentPipe?
    /// The seats of the manager that made the call.
    let owner: ManagerSeats
    private let order: Order
    private let seat: ManagerSeat
    private var local: LocalExchange?
    private var head: Answer?
    /// Kept if there are records, because a record would otherwise take its data.
    private var recorded: Exchange?
    private var bytes: [UInt8] = []
    private var received = 0
    private var isOver = false
    private var upload: Task<Void, Never>?
    /// The number of the upload: what an earlier one still brings is ignored.
    private var uploads = 0
    private var wanted: LoopWait<Void>?

    init(_ order: Order, seat: ManagerSeat, owner: ManagerSeats) {
        self.order = order
        self.seat = seat
        self.owner = owner
        guard order.limit == nil else {
            pipe = nil
            return
        }
        let drained = OneWay()
        pipe = ContentPipe { drained.call() }
        drained.set { [weak self] in
            guard let self else { return }
            self.seat.loop.loop.execute { self.local?.resume() }
        }
    }

    /// Abandons the response. May be called from any thread.
    func abandon() { seat.loop.loop.execute { self.leave() } }

    /// The remaining content of an error response, up to a limit. If the content is cut off, the error is ignored.
    func rest(_ response: HttpResponse, upTo limit: Int) async -> [UInt8] {
        guard let pipe else { return response.content.bytes ?? [] }
        var all: [UInt8] = []
        while all.count < limit, let piece = try? await pipe.next() { all += piece.prefix(limit - all.count) }
        abandon()
        return all
    }

    // MARK: On the loop

    func begin() {
        guard !isOver else { return }
        let server: LoopListener
        do {
            server = try seat.server()
        } catch {
            return finish(HttpError(.client, .exchange(.internalError), .making, "\(error)", underlying: error))
        }
        seat.loop.begun(self)
        let local = LocalExchange(server, receiver: self)
        self.local = local
        if let exchange = local.exchange {
            if server.records != nil { recorded = exchange }
            exchange.timeouts = order.timeouts
            exchange[ClientRequest.self] = order.about
            if order.isAwaited { exchange[IsAwaited.self] = true }
            if order.decodesContent { exchange[ClientEdge.AsksForCodings.self] = true }
            if order.about.authentication == .none {
                exchange[WantsCredentials.self] = false
            } else if !seat.core.credentials.isEmpty || !seat.core.fixedPrincipals.isEmpty {
                exchange[OwnsCredentials.self] = true
                // Responses stored for one account must not be used for another, wherever a cache is in the chain.
                for credential in seat.core.credentials { exchange.authenticated(as: credential.accountPrincipal) }
                for principal in seat.core.fixedPrincipals { exchange.authenticated(as: principal) }
            }
            if !seat.core.jars.isEmpty {
                // The same applies to the accounts of cookies.
                let owners = seat.core.jars.map { (jar: $0, owner: $0.owner) }
                exchange[Cookies.Owners.self] = owners.map { ($0.jar, $0.owner.name) }
                for (_, owner) in owners { exchange.authenticated(as: owner.principal) }
            }
        }
        do throws(GatewayError) {
            try start(local)
        } catch {
            finish(HttpError(.client, .invalidRequest, .making, error.reason, underlying: error))
        }
    }

    private func start(_ local: LocalExchange) throws(GatewayError) {
        var request = order.request
        switch order.content.storage {
        case .none: try local.start(request)
        case .bytes(let bytes):
            request.content = .bytes(bytes)
            try local.start(request, mayStartOver: true)
            order.progress?(TransferProgress(direction: .sent, bytes: bytes.count, total: bytes.count))
        case .streamed(let length, let mayRepeat, _):
            request.content = .streamed(length: length)
            try local.start(request, mayStartOver: mayRepeat)
            // The exchange may have asked for the content already.
            if upload == nil { beginUpload() }
        }
    }

    private func beginUpload() {
        guard !isOver, case .streamed(let length, _, let open) = order.content.storage else { return }
        uploads += 1
        upload = Task.detached { [weak self, uploads] in await self?.send(open, length, uploads) }
    }

    /// Ends the exchange because the caller has gone.
    func leave() {
        guard !isOver else { return }
        over()
        local.take()?.leave()
        pipe?.end(.failure(GatewayError(.downstream, .clientLeft, "the response was released before its end")))
    }

    /// Ends the exchange, because the client is shut down, or only this request is cancelled.
    func end(isShutdown: Bool) {
        guard !isOver else { return }
        let local = self.local.take()
        let stage: HttpError.Stage = head == nil ? .sending : .receiving
        finish(
            isShutdown
                ? HttpError(.client, .shutDown, stage, "the client was shut down")
                : HttpError(.client, .cancelled, stage, "the request was cancelled", underlying: CancellationError()))
        local?.leave()
    }

    private func over() {
        isOver = true
        recorded = nil
        upload?.cancel()
        upload = nil
        wanted = nil
        seat.loop.ended(self)
    }

    /// `original` is the error as the exchange reported it; by default it is in `error`.
    private func finish(_ error: HttpError, _ original: GatewayError? = nil) {
        over()
        local = nil
        answer.resume(returning: .failure(error))
        let original =
            original ?? error.underlying as? GatewayError ?? GatewayError(.gateway, .clientLeft, error.reason)
        pipe?.end(.failure(original))
    }

    // MARK: The response

    func responseStarted(_ exchange: Exchange, _ response: HttpResponse) {
        if exchange.responder == .gateway, let failure = exchange.failure {
            // The response that reports the failure still passes to the end, and completes the record.
            return finish(
                HttpError(
                    failure, exchange.record.firstByte > 0 ? .receiving : .sending,
                    thrown: exchange[ThrownByWare.self]?.error
                ).about(nil, sent(exchange)))
        }
        var cause: GatewayError?
        if case .ware = exchange.responder { cause = exchange[AnswerCause.self] }
        let answer = Answer(
            response: response, responder: exchange.responder, isSuccess: exchange[StatusCheck.Outcome.self],
            record: exchange.record, problem: exchange[CredentialProblem.self], cause: cause,
            notRepeatable: exchange[NotRepeatable.self], request: sent(exchange))
        head = answer
        if let limit = order.limit {
            if let length = response.content.length {
                if length > limit, order.request.method != .head { return tooLarge(limit) }
                bytes.reserveCapacity(min(length, 1 << 20))
            }
        } else {
            self.answer.resume(returning: .success(answer))
        }
    }

    /// The request as it went upstream, with the content that the program has in memory.
    private func sent(_ exchange: Exchange) -> HttpRequest? {
        guard var request = exchange.request else { return nil }
        if case .bytes(let bytes) = order.content.storage, request.content.bytes == nil {
            request.content = .bytes(bytes)
        }
        return request
    }

    func responseContent(_ piece: UnsafeRawBufferPointer) {
        guard !isOver else { return }
        received += piece.count
        if let progress = order.progress {
            progress(TransferProgress(direction: .received, bytes: received, total: head?.response.content.length))
        }
        if let pipe {
            if pipe.push(piece) { local?.pause() }
            return
        }
        guard let limit = order.limit, received <= limit else { return tooLarge(order.limit ?? 0) }
        bytes.append(contentsOf: piece)
    }

    private func tooLarge(_ limit: Int) {
        let local = self.local.take()
        finish(
            HttpError(
                GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit) bytes"),
                .receiving))
        local?.leave()
    }

    func responseEnded(_ exchange: Exchange, _ trailers: HttpFields?) {
        guard !isOver else { return }
        over()
        local = nil
        if let pipe { return pipe.end(.success(())) }
        guard var answer = head.take() else { return }
        answer.record = exchange.record
        answer.response.content = .bytes(bytes)
        self.answer.resume(returning: .success(answer))
    }

    func responseFailed(_ exchange: Exchange, _ error: GatewayError) {
        guard !isOver else { return }
        finish(HttpError(error, .receiving).about(nil, head?.request ?? sent(exchange), head?.response), error)
    }

    // MARK: The request's content

    func contentWanted() { wanted.take()?.resume(returning: ()) }

    func contentStartsOver() {
        upload?.cancel()
        wanted = nil
        beginUpload()
    }

    /// Sends the content in pieces, each after the previous one was sent. Runs on the global pool, because it may wait for a
    /// disk.
    private func send(_ open: @Sendable () throws -> any UploadSource, _ length: Int?, _ number: Int) async {
        let loop = seat.loop.loop
        var sent = 0
        do {
            let source = try open()
            while let piece = try await source.next() {
                sent += piece.count
                if let length, sent > length {
                    throw UploadFault("the content is longer than the stated \(length) bytes")
                }
                let taken = LoopWait<LoopWait<Void>?>()
                let progress = TransferProgress(direction: .sent, bytes: sent, total: length)
                loop.execute { taken.resume(returning: self.supply(piece, progress, number)) }
                if let wait = try await taken.value() { try await wait.value() }
            }
            if let length, sent < length {
                throw UploadFault("the content has \(sent) bytes, not the stated \(length)")
            }
            loop.execute { if number == self.uploads { self.local?.finish() } }
        } catch {
            if error is CancellationError, Task.isCancelled { return }
            loop.execute { if number == self.uploads { self.uploadFailed(error) } }
        }
    }

    /// Passes a piece to the exchange. Returns the wait that must end before the next piece; `nil` for none.
    private func supply(_ piece: [UInt8], _ progress: TransferProgress, _ number: Int) -> LoopWait<Void>? {
        guard let local, !isOver, number == uploads else { return nil }
        order.progress?(progress)
        if piece.withUnsafeBytes({ local.supply($0) }) { return nil }
        let wait = LoopWait<Void>()
        wanted = wait
        return wait
    }

    private func uploadFailed(_ error: any Error) {
        guard !isOver else { return }
        let local = self.local.take()
        finish(
            HttpError(.client, .uploadFailed, .sending, "the content could not be sent: \(error)", underlying: error))
        local?.leave()
    }
}

/// A fault of a content source that makes the request invalid.
struct UploadFault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
