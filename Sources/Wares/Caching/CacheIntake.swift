import HttpCaching
import HttpWare

/// Takes a response in: into the store, if it may be stored, and to those who follow, as it comes. Used on one loop only.
final class CacheIntake: ContentFilter {
    private let mostBytes: Int
    private let turn: CacheTurn
    private var head: StoredHead?
    private var writer: (any StoreWriter)?
    /// A part's content, which is put together with what there is already.
    private var part: [UInt8]?
    /// The cache that puts it together; a copy is made only then.
    private var joiner: HttpCache?
    private var taken = 0
    private var isOver = false

    /// Prepares to take the response's content. `head` is what is stored of it.
    init(_ cache: borrowing HttpCache, _ turn: CacheTurn, head: consuming StoredHead, length: Int?) {
        mostBytes = cache.maxObject.bytes
        self.turn = turn
        // What is longer is not put together with others, so that it is never in memory whole.
        if (head.part?.range.count ?? .max) > HttpCache.mostJoined {
            writer = cache.store.write(under: turn.key, length: length ?? head.part?.range.count)
        } else {
            part = []
            joiner = copy cache
        }
        if writer != nil || part != nil { self.head = consume head }
    }

    var keepsLength: Bool { true }
    /// Whether it goes into the store, as far as can be told.
    var stores: Bool { head != nil }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        if output.isEmpty { output = Array(input) } else { output.append(contentsOf: input) }
        if output.count == input.count { takePiece(output) } else { takePiece(Array(input)) }
    }

    /// The next piece.
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

    /// The content is whole.
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
                // It has not as many bytes as its Content-Range says.
                writer?.cancel()
            }
        }
        endSharing(isWhole: true)
    }

    /// It ended before that: nothing is stored. Does nothing after `finish`.
    func abandon() {
        guard !isOver else { return }
        isOver = true
        giveUpStoring()
        endSharing(isWhole: false)
    }

    /// Only behind the store's end, so that whoever comes finds the one or the other.
    private func endSharing(isWhole: Bool) {
        turn.finish(isWhole: isWhole)
    }
}

/// Takes the response to a question whether a stored one still holds, that no client asked.
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
        case .updated, .useless, .failed, .passing: break
        case .storing(let intake, _, _): self.intake = intake
        }
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) { intake?.takePiece(Array(bytes)) }

    func responseEnded(isWhole: Bool) {
        if isWhole { intake?.finish() } else { intake?.abandon() }
        turn.abandon()
    }
}
