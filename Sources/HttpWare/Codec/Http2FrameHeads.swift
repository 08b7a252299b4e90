/// Counts the frames in a peer's bytes, because libnghttp2 does not report frames that it ignores. RFC 9113 §4.1.
struct Http2FrameHeads {
    /// The length, type and flags of the frame whose head is being read.
    private var head: UInt64 = 0
    private var headBytes = 0
    /// The number of bytes up to the next head.
    private var skipped: Int

    /// The first frame begins after `count` bytes.
    init(behind count: Int) { skipped = count }

    /// The number of frames that begin in these bytes, except DATA with content.
    mutating func count(_ bytes: UnsafeRawBufferPointer) -> Int {
        var position = 0
        var frames = 0
        while true {
            let step = min(skipped, bytes.count &- position)
            position &+= step
            skipped &-= step
            guard position < bytes.count else { return frames }
            if headBytes == 0, bytes.count &- position >= 9 {
                // The head is usually complete.
                let head = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)) >> 24
                position &+= 9
                if begin(head) { frames &+= 1 }
                continue
            }
            // Nine bytes: three of length, the type, the flags, four of the stream.
            if headBytes < 5 { head = (head << 8 | UInt64(bytes[position])) & 0xff_ffff_ffff }
            position &+= 1
            headBytes &+= 1
            if headBytes == 9 {
                headBytes = 0
                if begin(head) { frames &+= 1 }
            }
        }
    }

    /// Begins a frame with this length, type and flags. Returns whether it counts.
    @inline(__always)
    private mutating func begin(_ head: UInt64) -> Bool {
        skipped = Int(head >> 16)
        return !Http2FrameHeads.isContent(
            type: UInt8(truncatingIfNeeded: head >> 8), flags: UInt8(truncatingIfNeeded: head), length: skipped)
    }

    /// Whether a frame is DATA with content. Padded DATA may be padding alone, so it does not count as content here.
    @inline(__always)
    static func isContent(type: UInt8, flags: UInt8, length: Int) -> Bool {
        type == 0 && length > 0 && flags & padded == 0
    }

    /// The flag of a padded frame. RFC 9113 §6.1.
    static let padded: UInt8 = 0x8
}

/// The first bytes of an HTTP/2 client. RFC 9113 §3.4.
enum Http2Preface {
    /// The length of the preface.
    static let count = 24

    /// Whether these bytes, which were refused as a head of HTTP/1.1, begin with the preface's first line.
    static func begins(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let line: StaticString = "PRI * HTTP/2.0\r\n"
        guard bytes.count >= line.utf8CodeUnitCount else { return false }
        return (0..<line.utf8CodeUnitCount).allSatisfy { bytes[$0] == line.utf8Start[$0] }
    }
}
