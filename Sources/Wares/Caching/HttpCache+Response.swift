// One file: each decision about a response tells its own request, the store, and the requests that wait.

import HttpCaching
public import HttpWare

extension HttpCache {
    /// The decision of the cache about a response.
    enum Taking {
        /// The stored response is still valid; this is its updated form.
        case updated(StoredResponse)
        /// The response to the cache's own condition cannot be used: the request is sent again without the condition.
        case useless
        /// The origin server was not reachable, or failed.
        case failed
        /// The response is stored as its content arrives. The head is that for other clients that wait for the response; `nil` if each of
        /// them has to ask itself.
        case storing(CacheIntake, CollapsedHead?)
        /// The response is not stored, for this reason.
        case passing(String)
    }

    // MARK: The response half

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let turn = exchange[CacheTurn.Key.self].take() else { return .pass }
        if !turn.method.isSafe { invalidate(turn, response) }
        if let part = turn.asked.completing, let answer = complete(part, &response, turn, exchange) { return answer }
        return receive(&response, turn, exchange)
    }

    /// Stores the response, or answers with a stored one in its place.
    func receive(_ response: inout HttpResponse, _ turn: CacheTurn, _ exchange: Exchange) -> Answer {
        if alwaysValidates, isKnown(response, turn, exchange) {
            return answer(known: &response, turn, exchange)
        }
        switch takeResponse(response, turn, in: exchange) {
        case .updated(let stored): return answer(updated: stored, response.fields, turn, exchange)
        case .useless:
            exchange.note("304 is about another representation than the stored one: requested again")
            return .wait { [stored = turn.validated] _, exchange in
                try await self.startOver(turn, stored, exchange)
            }
        case .failed: return answer(failure: &response, turn, exchange)
        case .storing(let intake, let shared):
            turn.status.isStored = intake.stores
            exchange.note(intake.stores ? "stored" : "not stored: the store has no room", asDecision: intake.stores)
            if let shared { turn.beginResponse(shared) } else { turn.refuse(at: exchange.now) }
            tell(turn.status, in: &response)
            pass(response, through: intake, exchange)
            return .pass
        case .passing(let reason):
            exchange.note("not stored: \(reason)")
            if response.status.code >= 500, !exchange.isForItsClientAlone {
                return pass(failure: &response, turn, exchange)
            }
            turn.refuse(at: exchange.now)
            if turn.status.forward != .method { tell(turn.status, in: &response) }
            return .pass
        }
    }

    // MARK: Responses known to the client

    /// Whether the origin server ignored the conditions and sent what the client already has. RFC 9110 §13.2.1.
    private func isKnown(_ response: HttpResponse, _ turn: CacheTurn, _ exchange: Exchange) -> Bool {
        guard response.status == .ok, exchange.responder != .gateway, turn.method == .get || turn.method == .head,
            Preconditions.areConditional(turn.fields)
        else { return false }
        let validators = Validators(response.fields, now: exchange.wallNow)
        // Without `Last-Modified`, the response is not known to be as old as the client's. RFC 9110 §13.1.3.
        guard turn.fields.contains(.ifNoneMatch) || validators.lastModified != nil else { return false }
        return Preconditions.decide(turn.fields, stored: validators, received: exchange.wallNow) == .notModified
    }

    /// Answers 304 in place of the response. The content is not read in order to store it. An origin server that ignored a
    /// condition once will do so again, and a stored copy would then save nothing.
    private func answer(known response: inout HttpResponse, _ turn: CacheTurn, _ exchange: Exchange) -> Answer {
        if let stored = turn.validated,
            !stored.validators.arePicked(by: Validators(response.fields, now: exchange.wallNow))
        {
            store.remove(stored, under: turn.key)
        }
        exchange.cacheResult = .validated
        exchange.note("not modified: the client has what the origin server sent", asDecision: true)
        turn.abandon()
        response = StoredAnswer.notModified(response)
        return .pass
    }

    /// Answers with the stored response, which is still valid. A cookie that the 304 sets goes to the client that asked, and is
    /// never stored.
    private func answer(
        updated stored: StoredResponse, _ fields: HttpFields, _ turn: CacheTurn, _ exchange: Exchange
    ) -> Answer {
        turn.release(mayShare(validated: stored, fields) ? .stored(stored) : .goAlone)
        exchange.cacheResult = .validated
        exchange.note("validated", asDecision: true)
        turn.status.forwardStatus = 304
        var response = makeResponse(stored, turn, exchange)
        if fields.contains(.setCookie) {
            response.fields.remove(.setCookie)
            for value in fields.rawValues(of: .setCookie) { try? response.fields.append(.setCookie, raw: value) }
        }
        return .replace(with: response)
    }

    /// Whether others that wait may have a stored response that was validated for one of them: not if each use needs its own validation, or if
    /// the 304 says that it is for one client. RFC 9111 §5.2.2.4.
    private func mayShare(validated stored: StoredResponse, _ fields: HttpFields) -> Bool {
        !stored.rules.needsValidation && !isForOneClient(policy.directives(of: fields).0)
    }

    /// Whether a response with these directives is for the client alone whose request caused it. RFC 9111 §5.2.2.5, §5.2.2.7.
    private func isForOneClient(_ directives: borrowing ResponseDirectives) -> Bool {
        directives.noStore || policy.mode == .shared && directives.isPrivate == .response
    }

    /// The origin server failed: answers with a stale response if that is allowed.
    private func answer(
        failure response: inout HttpResponse, _ turn: CacheTurn, _ exchange: Exchange
    ) -> Answer {
        if let stored = turn.validated, !alwaysValidates {
            let age = stored.age(at: exchange.wallNow)
            var policy = policy
            let isAsked = exchange[StaleFallback.self] == true
            if isAsked { policy.staleOnDisconnect = true }
            let mayUse = Reuse.mayUseOnError(
                age: age, rules: stored.rules, request: turn.wishes, policy: policy,
                isDisconnected: isAsked || isDisconnected(exchange))
            if mayUse {
                noteFailure(turn, exchange)
                // A permission of the request itself, or of its exchange, is not one of the others.
                let mayOthers = Reuse.mayUseOnError(
                    age: age, rules: stored.rules, request: RequestDirectives(), policy: self.policy,
                    isDisconnected: isDisconnected(exchange))
                if mayOthers { turn.release(.stored(stored)) } else if !turn.passOn() { turn.release(.goAlone) }
                exchange.cacheResult = .stale
                exchange.note("stale, because of an error", asDecision: true)
                if exchange.responder != .gateway { turn.status.forwardStatus = response.status.code }
                return .replace(with: makeResponse(stored, turn, exchange))
            }
        }
        exchange.note("not stored: the origin server failed")
        return pass(failure: &response, turn, exchange)
    }

    /// Remembers that the origin server failed, or could not be reached; not a failure of the gateway or of a ware.
    func noteFailure(_ turn: CacheTurn, _ exchange: Exchange) {
        guard exchange.responder == .upstream || exchange.failure?.side == .upstream else { return }
        failures.note(turn.key, isDisconnected: isDisconnected(exchange), at: exchange.now)
    }

    /// Whether the origin server could not be reached, or did not answer. RFC 9111 §4.2.4.
    private func isDisconnected(_ exchange: Exchange) -> Bool {
        guard exchange.responder == .gateway, let failure = exchange.failure else { return false }
        return switch failure.fault {
        case .dnsError, .dnsTimeout, .destinationUnavailable, .noEndpoint, .proxyRefused, .connectionRefused,
            .connectionTimeout,
            .connectionTerminated, .responseTimeout, .responseIncomplete:
            true
        default: false
        }
    }

    /// Passes a failure on. First, one of the followers tries again. If that fails too, all of them get the failure, so that they
    /// do not all go upstream at once. A failure that is for one client, or for other fields of requests, is not for them.
    private func pass(failure response: inout HttpResponse, _ turn: CacheTurn, _ exchange: Exchange) -> Answer {
        if !turn.passOn(), !turn.isOver {
            guard !isForOneClient(policy.directives(of: response.fields).0),
                let vary = VaryKey(response.fields, always: keyFields, of: turn.fields)
            else {
                turn.refuse(at: exchange.now)
                tell(turn.status, in: &response)
                return .pass
            }
            turn.beginResponse(CollapsedResponse.Head(response, vary: vary, isFailure: true))
            if response.content.isEmpty {
                turn.finish(isWhole: true)
            } else {
                exchange.filterResponseContent(with: CollapsedFilter(turn))
                exchange.onEnd { _ in turn.finish(isWhole: false) }
            }
        }
        tell(turn.status, in: &response)
        return .pass
    }

    private func makeResponse(_ stored: StoredResponse, _ turn: CacheTurn, _ exchange: Exchange) -> HttpResponse {
        let now = exchange.wallNow
        let age = stored.age(at: now)
        turn.status.ttl = Int64(stored.rules.lifetime) - age / 1_000_000_000
        var response = StoredAnswer.make(stored, for: turn.method, turn.fields, age: age, now: now)
        tell(turn.status, in: &response)
        return response
    }

    /// Adds the intake as a filter of the content.
    private func pass(_ response: HttpResponse, through intake: CacheIntake, _ exchange: Exchange) {
        guard !response.content.isEmpty else { return intake.finish() }
        exchange.filterResponseContent(with: intake)
        exchange.onEnd { _ in intake.abandon() }
    }

    // MARK: Taking responses

    /// Decides whether to store a response, and updates the stored one.
    func takeResponse(_ response: HttpResponse, _ turn: CacheTurn, in exchange: Exchange) -> Taking {
        if exchange.responder == .gateway { return .failed }
        // RFC 9110 §3.3: another client has not authenticated that connection.
        if exchange.isForItsClientAlone { return .passing("the client authenticates its connection") }
        let isFailure = [500, 502, 503, 504].contains(response.status.code)
        if !isFailure { failures.forget(turn.key) }
        if let stored = turn.validated {
            if response.status == .notModified { return take(notModified: response, stored, turn, exchange) }
            if isFailure { return .failed }
        }
        let now = exchange.wallNow
        // One copy for all functions that read the fields.
        let received = response.fields
        let times = MessageTimes(received, requested: requestTime(exchange, now), received: now)
        if turn.method == .head {
            take(headOf: response, turn, times)
            return .passing("a response to HEAD has no content")
        }
        let (directives, isTargeted) = policy.directives(of: received)
        let mayGuess = mayGuess(turn)
        let lifetime = FreshnessLifetime(
            status: response.status, fields: received, directives: directives, isTargeted: isTargeted,
            times: times, policy: policy, mayGuess: mayGuess)
        let storability = Storability.decide(
            method: turn.method, request: turn.wishes, isAuthorized: turn.isAuthorized, status: response.status,
            fields: received, directives: directives, lifetime: lifetime, policy: policy)
        if case .mayNot(let obstacle) = storability { return .passing(obstacle.rawValue) }
        if let reason = obstacle(response, turn) { return .passing(reason) }
        guard let vary = VaryKey(received, always: keyFields, of: turn.fields) else {
            return .passing("it varies by more fields than are compared")
        }
        var part: ContentRange?
        if response.status == .partialContent {
            part = StoredParts.part(of: response)
            if part == nil { return .passing(Storability.Obstacle.contentRange.rawValue) }
        }
        var fields = received
        StoredFields.addDate(now, to: &fields, statedBy: received)
        let tags = CacheTags.read(fields.values(of: tagField))
        let keepsCookies = policy.setCookie == .store || policy.mode == .private && turn.isPersonal
        var head = StoredHead(
            status: response.status, fields: consume fields, times: times, directives: directives, lifetime: lifetime,
            vary: vary, mode: policy.mode, part: part, tags: tags, keepsCookies: keepsCookies, key: turn.key)
        if !mayGuess, !lifetime.isExplicit { head.rules.forbidsStale = true }
        // If the length is unknown, it is checked when the content ends.
        if response.content.length != nil { head.becomeWhole() }
        // A response that has to be validated before each use answers only the request that caused it. RFC 9111 §5.2.2.4.
        let shared =
            head.rules.needsValidation
            ? nil
            : CollapsedHead(response, head, directives: directives, mode: policy.mode, keepsCookies: keepsCookies)
        let intake = CacheIntake(self, turn, head: consume head, length: response.content.length)
        return .storing(intake, shared)
    }

    /// Whether a heuristic lifetime may be used for the response. A shared cache uses none if the request had a cookie, because
    /// the response may be meant for its sender.
    private func mayGuess(_ turn: CacheTurn) -> Bool { policy.mode == .private || !turn.hasCookie }

    /// The reason not to store a response, in addition to the rules of the RFC.
    private func obstacle(_ response: HttpResponse, _ turn: CacheTurn) -> String? {
        if let length = response.content.length, length > maxObject.bytes { return "it is larger than \(maxObject)" }
        if alwaysValidates, Validators(response.fields, now: WallTime(seconds: 0)).isEmpty {
            return "it has no validator"
        }
        guard turn.method == .post else { return nil }
        // A POST's response answers GET only if it says that it represents the same resource. RFC 9110 §9.3.3.
        let location = response.fields[.contentLocation].flatMap { turn.keyOfReference?($0) }
        return location?.uri == turn.key.uri && response.status == .ok
            ? nil : "it does not say that it answers GET, too"
    }

    /// When the request was sent. RFC 9111 §4.2.3.
    private func requestTime(_ exchange: Exchange, _ now: WallTime) -> WallTime {
        let sent = exchange.record.sendStarted
        return sent == 0 ? now : now + .nanoseconds(min(0, sent - exchange.now.nanoseconds))
    }

    /// Handles 304: updates the stored response's fields, if the 304 selects that response. RFC 9111 §4.3.4.
    private func take(
        notModified response: HttpResponse, _ stored: StoredResponse, _ turn: CacheTurn, _ exchange: Exchange
    ) -> Taking {
        let now = exchange.wallNow
        if CacheValidation.isAmbiguous(response.fields, about: stored, client: turn.fields) {
            return .passing("304 does not say which of two representations it is about")
        }
        let validators = Validators(response.fields, now: now)
        guard stored.validators.arePicked(by: validators) else {
            // The condition was true by weak comparison, so the stored response may be sent, but not updated by a strong tag. Servers that
            // compress send a weak tag with 200 and the strong one of the file with 304. RFC 9110 §13.1.2.
            if let tag = validators.etag, let ours = stored.validators.etag, ours.isWeaklyEqual(to: tag) {
                return .updated(stored)
            }
            store.remove(stored, under: turn.key)
            // A client without a condition cannot use a 304. RFC 9110 §15.4.5.
            return turn.whole == nil ? .passing("304 is about another representation than the stored one") : .useless
        }
        let head = stored.head.updated(
            by: response.fields, requested: requestTime(exchange, now), received: now, policy: policy,
            mayGuess: mayGuess(turn))
        let (directives, _) = policy.directives(of: response.fields)
        if isForOneClient(directives) {
            store.remove(stored, under: turn.key)
        } else {
            store.replace(stored, with: head, under: turn.key)
        }
        return .updated(StoredResponse(head, content: stored.content))
    }

    /// The response to a HEAD shows whether the response stored for GET is still valid. RFC 9111 §4.3.5.
    private func take(headOf response: HttpResponse, _ turn: CacheTurn, _ times: MessageTimes) {
        guard response.status == .ok else { return }
        let fields = response.fields
        let mayGuess = mayGuess(turn)
        switch turn.validated.map({ .response($0) }) ?? find(turn) {
        case .response(let stored): update(stored, under: turn.key, by: fields, times, mayGuess)
        case .mustWait:
            later(turn) { [self, key = turn.key] stored in
                if let stored { update(stored, under: key, by: fields, times, mayGuess) }
            }
        case .none: break
        }
    }

    private func update(
        _ stored: StoredResponse, under key: CacheKey, by fields: HttpFields, _ times: MessageTimes, _ mayGuess: Bool
    ) {
        guard stored.status == .ok, stored.part == nil else { return }
        let theirs = Validators(fields, now: times.received)
        let ours = stored.validators
        let isSame =
            (theirs.etag == nil || theirs.etag == ours.etag)
            && (theirs.lastModified == nil || theirs.lastModified == ours.lastModified)
            && (fields[.contentLength].map { $0 == "\(stored.content.count)" } ?? true)
        if isSame, !theirs.isEmpty {
            let head = stored.head.updated(
                by: fields, requested: times.requested, received: times.received, policy: policy, mayGuess: mayGuess)
            store.replace(stored, with: head, under: key)
        } else if !isSame {
            store.remove(stored, under: key)
        }
    }

    // MARK: Stored responses

    private func find(_ turn: CacheTurn) -> Found { store.find(turn.key) { $0.vary.matches(turn.fields) } }

    /// Calls `body` on this loop once the store has loaded the response to the request. No exchange waits for it.
    private func later(_ turn: CacheTurn, _ body: @escaping @Sendable (StoredResponse?) async -> Void) {
        guard let loop = EventLoop.current else { return }
        Task(executorPreference: loop) { [store, key = turn.key, fields = turn.fields] in
            let stored = await store.load(key)
            await body(stored.first { $0.vary.matches(fields) })
        }
    }

    /// Joins a part with a stored part of the same representation. RFC 9111 §3.4.
    func store(part bytes: [UInt8], _ head: StoredHead, _ turn: CacheTurn) {
        let key = turn.key
        switch find(turn) {
        case .response(let stored) where stored.content.inMemory != nil:
            join(bytes, head, with: stored, stored.content.inMemory, under: key)
        case .none: join(bytes, head, with: nil, nil, under: key)
        case .response, .mustWait:
            later(turn) { [self] stored in
                let room = HttpCache.mostJoined - bytes.count
                join(bytes, head, with: stored, await stored?.content.read(atMost: room), under: key)
            }
        }
    }

    /// `others` is the content of `stored`; `nil` if it cannot be read or is too long.
    private func join(
        _ bytes: [UInt8], _ head: StoredHead, with stored: StoredResponse?, _ others: [UInt8]?, under key: CacheKey
    ) {
        guard let part = head.part, bytes.count == part.range.count else { return }
        var head = head
        var bytes = bytes
        var fields = head.fields
        if let stored, Validators(fields, now: head.received).areStronglyEqual(to: stored.validators) {
            // A complete response is never replaced by a part.
            guard let other = stored.part else { return }
            if let others, let joined = StoredParts.join((part, bytes), (other, others)) {
                head.part = joined.part
                bytes = joined.bytes
                // Fields that the later part lacks are taken from the earlier one. RFC 9111 §3.4.
                fields = StoredFields.updated(stored.fields, by: fields)
                fields.set(.contentLength, to: bytes.count)
                head.fields = fields
            }
        }
        head.becomeWhole()
        guard bytes.count <= maxObject.bytes, let writer = store.write(under: key, length: bytes.count) else { return }
        var rest = bytes[...]
        while !rest.isEmpty {
            guard writer.append(Array(rest.prefix(256 << 10))) else { return }
            rest = rest.dropFirst(256 << 10)
        }
        writer.finish(head)
    }

    // MARK: Invalidation

    /// After a successful request that may have changed something, removes the stored responses of its target, and of targets on
    /// the same origin that the response names: those of all senders and all shares. RFC 9111 §4.4.
    private func invalidate(_ turn: CacheTurn, _ response: HttpResponse) {
        guard invalidatesOnUnsafe, (200..<400).contains(response.status.code) else { return }
        store.invalidate(turn.key)
        for name in [FieldName.location, .contentLocation] {
            if let reference = response.fields[name], let key = turn.keyOfReference?(reference) {
                store.invalidate(key)
            }
        }
    }
}
