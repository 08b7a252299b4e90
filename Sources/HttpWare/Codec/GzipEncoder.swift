import CZlib

/// Gzip (RFC 1952), by zlib. It uses 268 KiB.
final class GzipEncoder: ContentEncoder {
    /// Behind a pointer, because zlib keeps its address.
    private let stream: UnsafeMutablePointer<z_stream>

    let coding = ContentCoding.gzip

    /// `nil` if memory is exhausted.
    init?(level: Int) {
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // A window of 15 bits, and 16 for a gzip header instead of zlib's own.
        let result = deflateInit2_(
            stream, CInt(level), Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
            CInt(MemoryLayout<z_stream>.size))
        // If this fails, deinit cleans up.
        guard result == Z_OK else { return nil }
    }

    deinit {
        deflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    func reset() -> Bool { deflateReset(stream) == Z_OK }

    func run(
        _ input: UnsafeRawBufferPointer, _ step: ContentEncodingStep, into room: UnsafeMutableRawBufferPointer
    ) throws(ContentEncodingFailure) -> ContentEncodingProgress {
        // zlib counts in 32 bits: a longer piece leaves a rest for the next step.
        let piece = min(input.count, 1 << 30)
        // zlib only reads from this memory, although its type is mutable.
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.bindMemory(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = UInt32(piece)
        stream.pointee.next_out = room.bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_out = UInt32(clamping: room.count)
        let isLast = piece == input.count
        let flush =
            switch step {
            case .finish where isLast: Z_FINISH
            case .flush where isLast: Z_SYNC_FLUSH
            default: Z_NO_FLUSH
            }
        let result = deflate(stream, flush)
        // Z_BUF_ERROR means that there was nothing to do, so it is not a failure.
        guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else {
            throw ContentEncodingFailure(description: "zlib fails with \(result)")
        }
        let progress = ContentEncodingProgress(
            consumed: piece - Int(stream.pointee.avail_in), produced: room.count - Int(stream.pointee.avail_out),
            hasMore: result != Z_STREAM_END
                && (stream.pointee.avail_out == 0 || stream.pointee.avail_in > 0 || !isLast))
        stream.pointee.next_in = nil
        stream.pointee.next_out = nil
        return progress
    }
}
