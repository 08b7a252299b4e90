import HttpWare

/// Compresses the content of one response while it passes.
final class CompressedContent: ContentFilter {
    private let pool: EncoderPool
    /// `nil` once the content has ended.
    private var lent: EncoderPool.Lent?
    /// Whether each piece must be readable at once, because it is an event.
    private let isLive: Bool
    private(set) var holdsBack = false

    init(_ lent: EncoderPool.Lent, of pool: EncoderPool, isLive: Bool) {
        self.lent = lent
        self.pool = pool
        self.isLive = isLive
    }

    deinit { end() }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        try lent?.encoder.encode(input, isLive ? .flush : .more, into: &output)
        holdsBack = !isLive
    }

    func flush(into output: inout [UInt8]) throws {
        guard holdsBack else { return }
        holdsBack = false
        try lent?.encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .flush, into: &output)
    }

    func finish(into output: inout [UInt8]) throws {
        holdsBack = false
        try lent?.encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .finish, into: &output)
        end()
    }

    private func end() {
        if let lent { pool.giveBack(lent) }
        lent = nil
    }
}
