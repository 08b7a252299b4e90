import HttpCaching
import HttpWare

/// Receives a response while it streams: stores it, if it may be stored, and shares it with the requests that follow.
/// Used on one loop only.
final class CacheIntake: ContentFilter {
    private let mostBytes: Int
    private let turn: CacheTurn
    private var head: StoredHead?
    private var writer: (any StoreWriter)?
    /// The content of a partial response, which is joined with the part that is stored already.
    private var part: [UInt8]?
    /// The cache that joins the parts; copied only if there are parts to join.
    private var joiner: HttpCache?
    private var taken = 0
    private var isOver = false

    /// Prepares to receive the response's content. `head` is the part of the response's head that is stored.
    init(_ cache: borrowing HttpCache, _ turn: CacheTurn, head: consuming StoredHead, length: Int?) {
        mostBytes = cache.maxObject.bytes
        self.turn = turn
        // A longer part is not joined with others, so that the whole is never in memory.
        if (head.part?.range.count ?? .max) > HttpCache.mostJoined {
            writer = cache.store.write(under: turn.key, length: length ?? head.part?.range.count)
        } else {
            part = []
            joiner = copy cache
        }
        if writer != nil || part != nil { self.head = consume head }
    }

    var keepsLength: Bool { true }
    /// Whether the response is going to be stored, as far as is known yet.
    var stores: Bool { head != nil }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        if output.isEmpty { output = Array(input) } else { output.append(contentsOf: input) }
        if output.count == input.count { takePiece(output) } else { takePiece(Array(input)) }
    }

    /// Receives the next piece of the content.
    func takePiece(_ piece: [UInt8]) {
        guard !isOver else { return }
        taken += piece.count
        if taken > mostBytes { giveUpStoring() }
        if let writer {
            var rest = piece[...]
            while !rest.isEmpty {
                let next = rest.prefix(CacheIntake.largestPiece)
                rest = rest.dropFirst(next.count)
                guard writer.append(next.count == piece.count ? piece : Array(next)) else {
                    giveUpStoring()
                    break
                }
            }
        }
        part?.append(contentsOf: piece)
        turn.append(piece)
    }

    private static let largestPiece = 256 << 10

    private func giveUpStoring() {
        writer?.cancel()
        writer = nil
        part = nil
        head = nil
    }

    func finish(into output: inout [UInt8]) { finish() }

    /// The content is complete.
    func finish() {
        guard !isOver else { return }
        isOver = true
        if var head = head.take() {
            if let part {
                joiner?.store(part: part, head, turn)
            } else if taken == head.part?.range.count ?? taken {
                head.becomeWhole()
                writer?.finish(head)
            } else {
                // The content is shorter or longer than its Content-Range says.
                writer?.cancel()
            }
        }
        endSharing(isWhole: true)
    }

    /// The response ended early, so nothing is stored. Does nothing after `finish`.
    func abandon() {
        guard !isOver else { return }
        isOver = true
        giveUpStoring()
        endSharing(isWhole: false)
    }

    /// Called only after the store has the response, so that a new request always finds either this lead or the stored
    /// response.
    private func endSharing(isWhole: Bool) {
        turn.finish(isWhole: isWhole)
    }
}

/// Receives the response of a background revalidation, which no client asked for.
final class CacheRevalidation: BackgroundReceiver {
    private let cache: HttpCache
    private let turn: CacheTurn
    private var intake: CacheIntake?

    init(_ cache: HttpCache, _ turn: CacheTurn) {
        self.cache = cache
        self.turn = turn
    }

    func responseStarted(_ response: HttpResponse, in exchange: Exchange) {
        switch cache.takeResponse(response, turn, in: exchange) {
        case .updated, .useless, .passing: break
        case .failed: cache.noteFailure(turn, exchange)
        case .storing(let intake, _): self.intake = intake
        }
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) { intake?.takePiece(Array(bytes)) }

    func responseEnded(isWhole: Bool) {
        if isWhole { intake?.finish() } else { intake?.abandon() }
        turn.abandon()
    }
}
