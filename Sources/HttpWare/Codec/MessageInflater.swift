import CZlib

/// Inflates the messages of one direction of a WebSocket with `permessage-deflate`. RFC 7692 §7.2.2.
public final class MessageInflater {
    /// The input is not valid Deflate, or its output exceeds the limit.
    public struct Fault: Error, Equatable {}

    /// Behind a pointer, because zlib keeps its address.
    private let stream: UnsafeMutablePointer<z_stream>
    private let keepsContext: Bool
    private let longest: Int
    private var produced = 0

    private static let room = 16 << 10

    /// Makes an inflater; `nil` if memory is exhausted.
    ///
    /// - Parameters:
    ///   - keepsContext: whether messages refer to earlier ones: true unless the handshake agreed on `no_context_takeover`.
    ///   - longest: the maximum output of one message, in bytes.
    public init?(keepsContext: Bool, longest: Int) {
        self.keepsContext = keepsContext
        self.longest = longest
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        // The largest window can read the output of any window. If this fails, deinit cleans up.
        guard inflateInit2_(stream, -15, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size)) == Z_OK else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deinitialize(count: 1)
        stream.deallocate()
    }

    /// Inflates a part of a message. The output is passed to `body` in parts, which are valid during the call only.
    public func inflate(
        _ input: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws(Fault) {
        let isSound = withUnsafeTemporaryAllocation(byteCount: MessageInflater.room, alignment: 16) { room in
            run(input, room, body)
        }
        guard isSound else { throw Fault() }
    }

    /// The message has ended: inflates the tail that senders omit.
    public func endMessage(_ body: (UnsafeRawBufferPointer) -> Void) throws(Fault) {
        let tail: [UInt8] = [0, 0, 0xff, 0xff]
        let isSound = tail.withUnsafeBytes { tail in
            withUnsafeTemporaryAllocation(byteCount: MessageInflater.room, alignment: 16) { run(tail, $0, body) }
        }
        guard isSound else { throw Fault() }
        produced = 0
        if !keepsContext { inflateReset(stream) }
    }

    private func run(
        _ input: UnsafeRawBufferPointer, _ room: UnsafeMutableRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) -> Bool {
        var rest = input
        while true {
            let piece = min(rest.count, 1 << 30)
            // zlib only reads from this memory, although its type is mutable.
            stream.pointee.next_in = UnsafeMutablePointer(mutating: rest.bindMemory(to: UInt8.self).baseAddress)
            stream.pointee.avail_in = UInt32(piece)
            stream.pointee.next_out = room.bindMemory(to: UInt8.self).baseAddress
            stream.pointee.avail_out = UInt32(clamping: room.count)
            let result = CZlib.inflate(stream, Z_SYNC_FLUSH)
            let made = room.count - Int(stream.pointee.avail_out)
            let used = piece - Int(stream.pointee.avail_in)
            stream.pointee.next_in = nil
            stream.pointee.next_out = nil
            guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else { return false }
            rest = UnsafeRawBufferPointer(rebasing: rest[used...])
            if made > 0 {
                produced += made
                guard produced <= longest else { return false }
                body(UnsafeRawBufferPointer(rebasing: room[..<made]))
            }
            // A last block may end the stream inside a message; another stream follows it. RFC 7692 §7.2.3.4.
            if result == Z_STREAM_END { inflateReset(stream) }
            if made == room.count { continue }
            if rest.isEmpty { return true }
            guard used + made > 0 else { return false }
        }
    }
}
