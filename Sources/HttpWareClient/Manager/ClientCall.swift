import Wares
import HttpWare

/// One exchange of a client: the request with its content, the response whole or as a stream.
///
/// Unchecked: what changes is touched on the loop only; others see `answer` and `pipe`, which guard themselves.
final class ClientCall: LocalExchangeReceiver, @unchecked Sendable {
    /// What is known when the response is there: whole, or its head.
    struct Answer: Sendable {
        var response: HttpResponse
        let responder: Responder
        /// What `StatusCheck` said; `nil` without one.
        let isSuccess: Bool?
        var record: ExchangeRecord
        /// Why there was no token; `nil` where there was one, or none was needed.
        let problem: CredentialProblem?
    }

    /// What a call is made with.
    struct Order: Sendable {
        let request: HttpRequest
        let content: RequestContent
        /// Whether codings are taken off the response's content.
        let decodesContent: Bool
        let about: ClientRequest
        let timeouts: ExchangeTimeouts
        /// The most content that is held; `nil` streams it.
        let limit: Int?
        let progress: (@Sendable (TransferProgress) -> Void)?
    }

    let answer = LoopWait<Result<Answer, HttpError>>()
    /// The response's content, where it is streamed.
    let pipe: ContentPipe?
    /// The seats of the manager that it is a call of.
    let owner: ManagerSeats
    private let order: Order
    private let seat: ManagerSeat
    private var local: LocalExchange?
    private var head: Answer?
    /// Held where records are kept: else these would take what is in it.
    private var recorded: Exchange?
    private var bytes: [UInt8] = []
    private var received = 0
    private var isOver = false
    private var upload: Task<Void, Never>?
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

    /// The response is not wanted any more; from any thread.
    func abandon() { seat.loop.loop.execute { self.leave() } }

    /// What is left of the content of a response that is an error, up to a limit; what cuts it off is no news.
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
            if order.decodesContent { exchange[ClientEdge.AsksForCodings.self] = true }
            if order.about.authentication == .none {
                exchange[WantsCredentials.self] = false
            } else if !seat.core.credentials.isEmpty || !seat.core.fixedPrincipals.isEmpty {
                exchange[OwnsCredentials.self] = true
                // What is stored for one account is not for another, wherever a cache stands.
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
            try local.start(request)
            order.progress?(TransferProgress(direction: .sent, bytes: bytes.count, total: bytes.count))
        case .streamed(let length, _, let open):
            request.content = .streamed(length: length)
            try local.start(request)
            if !isOver { upload = Task.detached { [weak self] in await self?.send(open, length) } }
        }
    }

    /// The caller is gone.
    func leave() {
        guard !isOver else { return }
        over()
        local.take()?.leave()
        pipe?.end(.failure(GatewayError(.downstream, .clientLeft, "the response was released before its end")))
    }

    /// The client is shut down.
    func shutDown() {
        guard !isOver else { return }
        let local = self.local.take()
        finish(HttpError(.client, .shutDown, head == nil ? .sending : .receiving, "the client was shut down"))
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

    private func finish(_ error: HttpError) {
        over()
        local = nil
        answer.resume(returning: .failure(error))
        pipe?.end(
            .failure(error.underlying as? GatewayError ?? GatewayError(.gateway, .clientLeft, error.reason)))
    }

    // MARK: The response

    func responseStarted(_ exchange: Exchange, _ response: HttpResponse) {
        if exchange.responder == .gateway, let failure = exchange.failure {
            // The response that says so goes its way to the end, and the record with it.
            return finish(
                HttpError(
                    failure, exchange.record.firstByte > 0 ? .receiving : .sending,
                    thrown: exchange[ThrownByWare.self]?.error))
        }
        let answer = Answer(
            response: response, responder: exchange.responder, isSuccess: exchange[StatusCheck.Outcome.self],
            record: exchange.record, problem: exchange[CredentialProblem.self])
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
        finish(HttpError(error, .receiving).about(nil, nil, head?.response))
    }

    // MARK: The request's content

    func contentWanted() { wanted.take()?.resume(returning: ()) }

    /// Brings the content, piece by piece, each when the one before it has gone. On the global pool, as it may wait for a disk.
    private func send(_ open: @Sendable () throws -> any UploadSource, _ length: Int?) async {
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
                loop.execute { taken.resume(returning: self.supply(piece, progress)) }
                if let wait = try await taken.value() { try await wait.value() }
            }
            if let length, sent < length {
                throw UploadFault("the content has \(sent) bytes, not the stated \(length)")
            }
            loop.execute { self.local?.finish() }
        } catch {
            if error is CancellationError, Task.isCancelled { return }
            loop.execute { self.uploadFailed(error) }
        }
    }

    /// Gives a piece to the exchange; what is to be waited for before the next one.
    private func supply(_ piece: [UInt8], _ progress: TransferProgress) -> LoopWait<Void>? {
        guard let local, !isOver else { return nil }
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

/// What a source of content did that no message survives.
struct UploadFault: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
