import HttpCaching
import HttpWare

/// A request that holds a key, from the moment it may go upstream until its response is known. Used on its loop only.
final class IdempotencyTurn: ResponseSharer {
    /// Where the key is held.
    enum Place {
        case local(LocalIdempotency, Digest256)
        case shared(SharedLease)
    }

    private let place: Place
    private let content: Digest256
    private let rules: IdempotencyKey.Rules
    private let counts: IdempotencyCounts
    private let other: (any ResponseSharer)?
    private var head: StoredHead?
    private var taken: [UInt8] = []
    private(set) var isOver = false
    /// Whether the content is larger than may be stored.
    private var hasOutgrown = false

    init(
        _ place: Place, _ content: Digest256, _ rules: IdempotencyKey.Rules, _ counts: IdempotencyCounts,
        beside other: (any ResponseSharer)?
    ) {
        self.place = place
        self.content = content
        self.rules = rules
        self.counts = counts
        self.other = other
    }

    // MARK: The client

    /// Whether the exchange continues without its client. It does, because the request must not be processed twice, unless the
    /// response is too large to be stored.
    var outlivesClient: Bool { isStoring || other?.outlivesClient == true }
    var keepsPace: Bool { isStoring || other?.keepsPace == true }
    private var isStoring: Bool { !isOver && !hasOutgrown }

    func whenPaceKept(isAlone: Bool, _ wake: @escaping @Sendable () -> Void) {
        other?.whenPaceKept(isAlone: isAlone, wake)
    }

    func exchangeEnded() { other?.exchangeEnded() }

    // MARK: The response

    /// Handles the head of the origin server's response.
    func begin(_ response: borrowing HttpResponse, in exchange: Exchange) {
        let head = IdempotencyTurn.head(response.status, response.fields, content, rules.ttl, at: exchange.wallNow)
        let length = response.content.bytes?.count ?? response.content.length ?? 0
        if response.content.isEmpty {
            finish(head, [], in: exchange)
        } else if length > rules.maxBody.bytes {
            outgrow(head, in: exchange)
        } else {
            self.head = head
            exchange.filterResponseContent(with: IdempotencyFilter(self, exchange))
        }
    }

    /// The head of a stored response; its tag is the digest of the request.
    static func head(
        _ status: HttpStatus, _ fields: HttpFields, _ content: Digest256, _ ttl: Duration, at now: WallTime
    ) -> StoredHead {
        StoredHead(
            status: status, fields: fields,
            times: MessageTimes(requested: now, received: now, date: now, age: 0), directives: ResponseDirectives(),
            lifetime: FreshnessLifetime(seconds: ttl.components.seconds, source: .configured), vary: .none,
            mode: .private, tags: [content.hex])
    }

    /// Takes a piece of the content.
    func append(_ bytes: UnsafeRawBufferPointer, in exchange: Exchange) {
        guard !isOver, let head else { return }
        guard bytes.count <= rules.maxBody.bytes - taken.count else { return outgrow(head, in: exchange) }
        taken.append(contentsOf: bytes)
    }

    /// Handles the end of the content.
    func finish(in exchange: Exchange) {
        if !isOver, let head { finish(head, taken, in: exchange) }
    }

    private func outgrow(_ head: StoredHead, in exchange: Exchange) {
        hasOutgrown = true
        taken = []
        exchange.note("the response is too large to be stored")
        finish(head, [], in: exchange, isMarker: true)
    }

    private func finish(_ head: StoredHead, _ bytes: [UInt8], in exchange: Exchange, isMarker: Bool = false) {
        isOver = true
        taken = []
        counts.add(.stored)
        // Without a record, a receipt says that the response is not stored.
        let record = isMarker ? [] : IdempotencyRecord(head, bytes).bytes ?? []
        switch place {
        case .local(let idempotency, let key):
            idempotency.finish(key, content, with: record, for: rules.ttl)
        case .shared(let lease): lease.finish(with: record, for: rules.ttl)
        }
    }

    // MARK: Without a response

    /// Ends a turn whose request was not processed: the key is free.
    func free() {
        guard !isOver else { return }
        isOver = true
        switch place {
        case .local(let idempotency, let key): idempotency.free(key)
        case .shared(let lease): lease.free()
        }
    }

    /// Ends a turn that has no response from the origin server. If nothing was sent, the key is free; otherwise it stays taken
    /// for `lock`.
    func fail(in exchange: Exchange) {
        guard !isOver else { return }
        isOver = true
        taken = []
        let record = exchange.record
        let isUndone = record.attempts == record.refusals
        switch place {
        case .local(let idempotency, let key):
            if isUndone {
                idempotency.free(key)
            } else {
                idempotency.leave(key, for: rules.lock, at: exchange.now)
            }
        case .shared(let lease): if isUndone { lease.free() } else { lease.leave() }
        }
    }
}

/// Copies the content of a response that is going to be stored.
private final class IdempotencyFilter: ContentFilter {
    private let turn: IdempotencyTurn
    /// Not retained, because the exchange owns its filters.
    private unowned let exchange: Exchange

    init(_ turn: IdempotencyTurn, _ exchange: Exchange) {
        self.turn = turn
        self.exchange = exchange
    }

    var keepsLength: Bool { true }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        turn.append(input, in: exchange)
        output.append(contentsOf: input)
    }

    func finish(into output: inout [UInt8]) { turn.finish(in: exchange) }
}
