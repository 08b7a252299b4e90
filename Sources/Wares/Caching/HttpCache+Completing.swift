import HttpCaching
import HttpWare

/// Completes a stored part: a request for the whole representation asks upstream only for the rest. RFC 9111 §3.3, §3.4.
///
/// 1. A part that begins or ends the representation is stored, and a plain GET asks for the whole. `Range` asks for the rest, and
///    `If-Range` limits this to the same bytes. A representation larger than may be stored is not joined.
/// 2. A 206 with the rest, which a strong validator shows to be of the same bytes, becomes a 200. Both parts together go to the
///    client and to the store.
/// 3. A 200 is the current representation and is handled like any other.
/// 4. If a 206 does not fit, or the status is 416, the stored part is removed and the whole is requested.
extension HttpCache {
    /// Whether the stored part becomes the whole once the rest is added.
    func isCompletable(_ stored: StoredResponse) -> Bool {
        guard !alwaysValidates, let part = stored.part, let complete = part.complete,
            complete <= min(maxObject.bytes, HttpCache.mostJoined)
        else { return false }
        return (part.range.lowerBound == 0) != (part.range.upperBound == complete)
    }

    /// The range of the representation that is not stored.
    private func rest(of part: ContentRange) -> Range<Int>? {
        guard let complete = part.complete else { return nil }
        return part.range.lowerBound == 0 ? part.range.upperBound..<complete : 0..<part.range.lowerBound
    }

    /// Changes the request into one for the range that is not stored.
    func askForRest(of stored: StoredResponse, _ turn: CacheTurn, _ request: inout HttpRequest) {
        guard let part = stored.part, let rest = rest(of: part) else { return }
        turn.whole = request
        let last = rest.upperBound == part.complete ? "" : "\(rest.upperBound - 1)"
        try? request.fields.set(.range, to: "bytes=\(rest.lowerBound)-\(last)")
        let validators = stored.validators
        if let tag = validators.etag, !tag.isWeak, let line = stored.fields.rawValues(of: .etag).first {
            try? request.fields.set(.ifRange, toRaw: line)
        } else if validators.etag == nil, validators.isDateStrong, let modified = stored.fields[.lastModified] {
            try? request.fields.set(.ifRange, to: modified)
        }
    }

    /// Completes the stored part. Returns `nil` if the response does not answer the range request; it is then passed on
    /// unchanged.
    func complete(
        _ stored: StoredResponse, _ response: inout HttpResponse, _ turn: CacheTurn, _ exchange: Exchange
    ) -> Answer? {
        guard exchange.responder != .gateway else { return nil }
        guard response.status == .partialContent || response.status == .rangeNotSatisfiable else { return nil }
        guard fits(response, stored) else {
            exchange.note("the stored part does not fit: the whole is requested")
            return .wait { _, exchange in try await self.startOver(turn, stored, exchange) }
        }
        if let bytes = stored.content.inMemory {
            put(bytes, of: stored, into: &response, exchange)
            return nil
        }
        return .wait { response, exchange in
            guard let bytes = await stored.content.read(atMost: HttpCache.mostJoined) else {
                exchange.note("the stored part cannot be read: the whole is requested")
                return try await self.startOver(turn, stored, exchange)
            }
            self.put(bytes, of: stored, into: &response, exchange)
            return self.receive(&response, turn, exchange)
        }
    }

    /// Whether the response contains the missing range of the same bytes.
    private func fits(_ response: HttpResponse, _ stored: StoredResponse) -> Bool {
        guard response.status == .partialContent, let part = stored.part, let rest = rest(of: part),
            let range = response.fields[.contentRange].flatMap({ ContentRange(reading: $0) }), range.range == rest,
            range.complete == part.complete, response.content.length ?? rest.count == rest.count
        else { return false }
        // A coding that the response states must be that of the stored bytes. RFC 9110 §15.3.7.
        if let coding = response.fields[.contentEncoding], coding != stored.fields[.contentEncoding] { return false }
        let validators = Validators(response.fields, now: stored.head.received)
        return validators.areStronglyEqual(to: stored.validators)
    }

    /// Joins both parts into a response to a request for the whole. RFC 9111 §3.4.
    private func put(
        _ bytes: [UInt8], of stored: StoredResponse, into response: inout HttpResponse, _ exchange: Exchange
    ) {
        guard let part = stored.part, let complete = part.complete else { return }
        var fields = StoredFields.updated(stored.fields, by: response.fields)
        fields.remove(.contentRange)
        fields.set(.contentLength, to: complete)
        response.status = .ok
        response.fields = fields
        let isFirst = part.range.lowerBound == 0
        if let rest = response.content.bytes {
            response.content = .bytes(isFirst ? bytes + rest : rest + bytes)
        } else {
            response.content = .streamed(length: complete)
            exchange.filterResponseContent(
                with: JoinedContent(before: isFirst ? bytes : [], behind: isFirst ? [] : bytes))
        }
        exchange.note("completed")
    }

    /// Sends the request again as it was received, without the cache's conditions. Removes `stored` from the store, and discards
    /// the response at hand.
    func startOver(_ turn: CacheTurn, _ stored: StoredResponse?, _ exchange: Exchange) async throws -> Answer {
        if let stored { store.remove(stored, under: turn.key) }
        turn.startOver()
        let fetch = WholeFetch(self, turn)
        guard let whole = turn.whole, exchange.startBackground(whole, to: fetch) else {
            return .replace(with: .problem(.serviceUnavailable, "too many background requests are in progress"))
        }
        // The background exchange has its own limits.
        guard let head = try await fetch.head.value(), var answer = fetch.response.makeResponse(head) else {
            return .replace(with: .problem(.badGateway, "the origin server's response ended before its header section"))
        }
        tell(turn.status, in: &answer)
        return .replace(with: answer)
    }
}

/// Adds stored content before or after the content that arrives.
private final class JoinedContent: ContentFilter {
    private var before: [UInt8]
    private let behind: [UInt8]

    init(before: [UInt8], behind: [UInt8]) {
        self.before = before
        self.behind = behind
    }

    /// The response's length is already the length of both parts.
    var keepsLength: Bool { true }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        output += before
        before = []
        output.append(contentsOf: input)
    }

    func finish(into output: inout [UInt8]) {
        output += before
        output += behind
    }
}

/// Receives the whole response that replaces a part that did not fit: for the store and for the client.
private final class WholeFetch: BackgroundReceiver {
    private let cache: HttpCache
    private let turn: CacheTurn
    let response: CollapsedResponse
    /// The response's head; `nil` if no head arrives.
    let head = LoopWait<CollapsedResponse.Head?>()
    private var intake: CacheIntake?

    init(_ cache: HttpCache, _ turn: CacheTurn) {
        self.cache = cache
        self.turn = turn
        response = CollapsedResponse(window: cache.maxObject.bytes)
    }

    func responseStarted(_ response: HttpResponse, in exchange: Exchange) {
        if case .storing(let intake, let shared) = cache.takeResponse(response, turn, in: exchange) {
            self.intake = intake
            turn.status.isStored = intake.stores
            if let shared { turn.beginResponse(shared) } else { turn.refuse(at: exchange.now) }
        } else {
            turn.release(.goAlone)
        }
        let head = CollapsedResponse.Head(response, vary: .none, isFailure: false)
        self.response.beginContent(head, [])
        self.head.resume(returning: head)
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        let piece = Array(bytes)
        intake?.takePiece(piece)
        response.append(piece)
    }

    func responseEnded(isWhole: Bool) {
        if isWhole { intake?.finish() } else { intake?.abandon() }
        turn.abandon()
        response.finish(isWhole: isWhole)
        head.resume(returning: nil)
    }
}
