import CBrotli
import CZlib
import CZstd

/// gzip (RFC 1952) with all of its members, and the coding called `deflate`: zlib's format (RFC 1950), or raw Deflate as some
/// servers send it.
final class InflateReader: CodingReader {
    enum Format { case gzip, deflate }

    /// Behind a pointer, because zlib keeps its address.
    private let stream: UnsafeMutablePointer<z_stream>
    private let format: Format
    private var isMember = false
    private var isAfterMember = false
    private var isStarted = false

    init?(_ format: Format) {
        self.format = format
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let result = inflateInit2_(
            stream, format == .gzip ? 15 + 16 : 15, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
        // If this fails, deinit cleans up.
        guard result == Z_OK else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    var isWhole: Bool { !isMember }

    func read(_ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) throws -> (
        consumed: Int, produced: Int
    ) {
        if isAfterMember {
            guard input.count > 0 else { return (0, 0) }
            guard format == .gzip else { throw ContentDecoder.Fault(description: "bytes follow the coded content") }
            isAfterMember = false
            inflateReset(stream)
        }
        if input.count > 0 {
            isMember = true
            // zlib's format begins with a method of 8 and a window of at most 32 KiB; raw Deflate never does so in practice.
            if !isStarted, format == .deflate, input[0] & 0x0f != 8 || input[0] >> 4 > 7 {
                inflateReset2(stream, -15)
            }
            isStarted = true
        }
        let piece = min(input.count, 1 << 30)
        // zlib only reads from this memory, although its type is mutable.
        stream.pointee.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
        stream.pointee.avail_in = UInt32(piece)
        stream.pointee.next_out = room.bindMemory(to: UInt8.self).baseAddress
        stream.pointee.avail_out = UInt32(clamping: room.count)
        let result = inflate(stream, Z_NO_FLUSH)
        defer {
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
        }
        guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else {
            throw ContentDecoder.Fault(description: "the content is not what its coding says")
        }
        if result == Z_STREAM_END {
            isMember = false
            isAfterMember = true
        }
        return (piece - Int(stream.pointee.avail_in), room.count - Int(stream.pointee.avail_out))
    }
}

/// Brotli (RFC 7932).
final class BrotliReader: CodingReader {
    private let state: OpaquePointer
    private var isStarted = false

    init?() {
        guard let state = BrotliDecoderCreateInstance(nil, nil, nil) else { return nil }
        self.state = state
    }

    deinit { BrotliDecoderDestroyInstance(state) }

    var isWhole: Bool { !isStarted || BrotliDecoderIsFinished(state) != 0 }

    func read(_ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) throws -> (
        consumed: Int, produced: Int
    ) {
        if input.count > 0 { isStarted = true }
        if isStarted, BrotliDecoderIsFinished(state) != 0 {
            guard input.count == 0 else { throw ContentDecoder.Fault(description: "bytes follow the coded content") }
            return (0, 0)
        }
        var inputLeft = input.count
        var next = input.bindMemory(to: UInt8.self).baseAddress
        var roomLeft = room.count
        var target = room.bindMemory(to: UInt8.self).baseAddress
        let result = BrotliDecoderDecompressStream(state, &inputLeft, &next, &roomLeft, &target, nil)
        guard result != BROTLI_DECODER_RESULT_ERROR else {
            throw ContentDecoder.Fault(description: "the content is not what its coding says")
        }
        return (input.count - inputLeft, room.count - roomLeft)
    }
}

/// Zstandard (RFC 8878) with all of its frames. It accepts windows of up to 8 MiB, as RFC 9659 §3 says. The library also reads formats
/// from before the RFC; they are refused, because it does not read them alike in pieces and whole.
final class ZstdReader: CodingReader {
    private let context: OpaquePointer
    /// The number of bytes that zstd still needs for the frame.
    private var wanted = 0
    /// The number of bytes of the frame's mark that have come, and whether it is the mark of a skippable frame.
    private var markCount = 0
    private var isSkippable = false

    /// The first four bytes of a frame. In a skippable one, the first byte has any four low bits. RFC 8878 §3.1.
    private static let mark: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd]
    private static let skippableMark: [UInt8] = [0x50, 0x2a, 0x4d, 0x18]

    init?() {
        guard let context = ZSTD_createDCtx() else { return nil }
        self.context = context
        guard ZSTD_isError(ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, 23)) == 0 else { return nil }
    }

    deinit { ZSTD_freeDCtx(context) }

    var isWhole: Bool { wanted == 0 }

    func read(_ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) throws -> (
        consumed: Int, produced: Int
    ) {
        if wanted == 0 {
            if input.count == 0 { return (0, 0) }
            markCount = 0
        }
        try checkMark(input)
        var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: 0)
        var target = ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
        let result = ZSTD_decompressStream(context, &target, &source)
        guard ZSTD_isError(result) == 0 else {
            throw ContentDecoder.Fault(description: "the content is not what its coding says")
        }
        wanted = result
        markCount = min(4, markCount + source.pos)
        return (source.pos, target.pos)
    }

    /// Checks the part of the frame's mark that is in the input.
    private func checkMark(_ input: UnsafeRawBufferPointer) throws {
        for (place, byte) in zip(markCount..<4, input) {
            if place == 0 { isSkippable = byte & 0xf0 == ZstdReader.skippableMark[0] }
            let expected = isSkippable ? ZstdReader.skippableMark[place] : ZstdReader.mark[place]
            guard byte == expected || place == 0 && isSkippable else {
                throw ContentDecoder.Fault(description: "the content is not what its coding says")
            }
        }
    }
}
