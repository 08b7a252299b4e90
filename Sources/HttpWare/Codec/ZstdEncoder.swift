import CZstd

/// Zstandard (RFC 8878), by its own library. It uses up to 2 MiB at levels up to 4, and up to 8 MiB at higher levels.
final class ZstdEncoder: ContentEncoder {
    private let context: OpaquePointer

    let coding = ContentCoding.zstd

    /// `nil` if memory is exhausted. A window of 256 KiB bounds its memory; RFC 9659 allows at most 8 MiB.
    init?(level: Int) {
        guard let context = ZSTD_createCCtx() else { return nil }
        self.context = context
        let isSet = [
            ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, CInt(level)),
            ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 18),
        ].allSatisfy { ZSTD_isError($0) == 0 }
        // If this fails, deinit cleans up.
        guard isSet else { return nil }
    }

    deinit { ZSTD_freeCCtx(context) }

    func reset() -> Bool { ZSTD_isError(ZSTD_CCtx_reset(context, ZSTD_reset_session_only)) == 0 }

    func run(
        _ input: UnsafeRawBufferPointer, _ step: ContentEncodingStep, into room: UnsafeMutableRawBufferPointer
    ) throws(ContentEncodingFailure) -> ContentEncodingProgress {
        let directive =
            switch step {
            case .more: ZSTD_e_continue
            case .flush: ZSTD_e_flush
            case .finish: ZSTD_e_end
            }
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
        let left = ZSTD_compressStream2(context, &target, &source, directive)
        guard ZSTD_isError(left) == 0 else { throw ContentEncodingFailure(description: "zstd fails") }
        let hasMore = source.pos < source.size || (directive != ZSTD_e_continue && left > 0)
        return ContentEncodingProgress(consumed: source.pos, produced: target.pos, hasMore: hasMore)
    }
}
