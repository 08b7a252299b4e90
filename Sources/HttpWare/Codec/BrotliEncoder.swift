import CBrotli

/// Brotli (RFC 7932), by Google's library. It uses up to 2 MiB, and cannot be reused.
final class BrotliEncoder: ContentEncoder {
    private let state: OpaquePointer

    let coding = ContentCoding.br

    /// `nil` if memory is exhausted. A window of 256 KiB bounds its memory.
    init?(level: Int) {
        guard let state = BrotliEncoderCreateInstance(nil, nil, nil) else { return nil }
        self.state = state
        BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, UInt32(level))
        BrotliEncoderSetParameter(state, BROTLI_PARAM_LGWIN, 18)
    }

    deinit { BrotliEncoderDestroyInstance(state) }

    func reset() -> Bool { false }

    func run(
        _ input: UnsafeRawBufferPointer, _ step: ContentEncodingStep, into room: UnsafeMutableRawBufferPointer
    ) throws(ContentEncodingFailure) -> ContentEncodingProgress {
        let operation =
            switch step {
            case .more: BROTLI_OPERATION_PROCESS
            case .flush: BROTLI_OPERATION_FLUSH
            case .finish: BROTLI_OPERATION_FINISH
            }
        var left = input.count
        var next = input.bindMemory(to: UInt8.self).baseAddress
        var free = room.count
        var place = room.bindMemory(to: UInt8.self).baseAddress
        guard BrotliEncoderCompressStream(state, operation, &left, &next, &free, &place, nil) != 0 else {
            throw ContentEncodingFailure(description: "brotli fails")
        }
        let hasMore =
            left > 0 || BrotliEncoderHasMoreOutput(state) != 0
            || operation == BROTLI_OPERATION_FINISH && BrotliEncoderIsFinished(state) == 0
        return ContentEncodingProgress(consumed: input.count - left, produced: room.count - free, hasMore: hasMore)
    }
}
