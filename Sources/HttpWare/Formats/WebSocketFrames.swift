/// Reads the frames of one direction of a WebSocket while their bytes arrive, and checks their heads and their order. RFC 6455 §5.
package struct WebSocketFrames {
    /// The head of a frame.
    package struct Frame: Sendable {
        /// The opcode; for the continuation of a message, the opcode of its first frame.
        package let opcode: UInt8
        /// Whether it is the last frame of its message.
        package let isLast: Bool
        /// Whether its message is compressed. RFC 7692 §6.
        package let isCompressed: Bool
        /// The mask of the payload; `nil` if it is not masked.
        package let mask: SIMD4<UInt8>?

        package var isControl: Bool { opcode & 0x08 != 0 }
    }

    /// The part of a frame's payload that a piece of the input contains. It is empty for a frame without payload.
    package struct Part {
        package let frame: Frame
        /// Whether the frame ends with this part.
        package let endsFrame: Bool
        fileprivate let range: Range<Int>
        fileprivate let maskPlace: Int

        /// Passes the bytes without their mask. They are valid during the call only.
        package func withPayload<Failure: Error>(
            of input: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void
        ) throws(Failure) {
            let payload = UnsafeRawBufferPointer(rebasing: input[range])
            guard let mask = frame.mask else { return try body(payload) }
            let plain = [UInt8](unsafeUninitializedCapacity: payload.count) { bytes, count in
                for index in payload.indices { bytes[index] = payload[index] ^ mask[(maskPlace + index) & 3] }
                count = payload.count
            }
            var result: Result<Void, Failure> = .success(())
            plain.withUnsafeBytes { bytes in
                do throws(Failure) { try body(bytes) } catch { result = .failure(error) }
            }
            try result.get()
        }
    }

    /// A peer violated the protocol.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String

        init(_ problem: String) { description = "a WebSocket " + problem }
    }

    /// The side that sends: only clients mask their frames. `nil` if that is not checked.
    private let isMasked: Bool?
    private let isDeflated: Bool
    private var head: [UInt8] = []
    /// The frame whose payload is read; `nil` while its head is read.
    private var frame: Frame?
    private var left = 0
    private var maskPlace = 0
    /// The message that continues with the next frame; control frames may come between its frames.
    private var message: (opcode: UInt8, isCompressed: Bool)?

    /// A reader of frames that are all masked, or not masked at all; `nil` accepts both. Without `isDeflated`, the frames use no extension.
    package init(isMasked: Bool?, isDeflated: Bool = false) {
        self.isMasked = isMasked
        self.isDeflated = isDeflated
    }

    /// Reads from `start` on the rest of a frame, or as much of it as there is; `nil` if there is nothing more of a payload.
    package mutating func next(in input: UnsafeRawBufferPointer, from start: inout Int) throws(Fault) -> Part? {
        if frame == nil {
            while head.count < headLength {
                guard start < input.count else { return nil }
                head.append(input[start])
                start += 1
            }
            frame = try readHead()
        }
        guard let frame, left == 0 || start < input.count else { return nil }
        let range = start..<start + min(left, input.count - start)
        let part = Part(frame: frame, endsFrame: range.count == left, range: range, maskPlace: maskPlace)
        start = range.upperBound
        left -= range.count
        maskPlace = (maskPlace + range.count) & 3
        if left == 0 { self.frame = nil }
        return part
    }

    private var lengthBytes: Int { head[1] & 0x7f == 126 ? 2 : head[1] & 0x7f == 127 ? 8 : 0 }

    private var headLength: Int { head.count < 2 ? 2 : 2 + lengthBytes + (head[1] & 0x80 != 0 ? 4 : 0) }

    private mutating func readHead() throws(Fault) -> Frame {
        defer { head.removeAll(keepingCapacity: true) }
        let (isLast, opcode) = (head[0] & 0x80 != 0, head[0] & 0x0f)
        let (isControl, isFirst) = (opcode & 0x08 != 0, opcode == 1 || opcode == 2)
        let hasFlag = head[0] & 0x40 != 0
        guard head[0] & 0x30 == 0, !hasFlag || isDeflated && isFirst else { throw Fault("frame uses an extension") }
        guard isMasked == nil || isMasked == (head[1] & 0x80 != 0) else {
            throw Fault("frame is masked by the wrong side")
        }
        let number = lengthBytes == 0 ? [head[1] & 0x7f] : head[2..<2 + lengthBytes]
        guard let length = Int(exactly: number.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) else {
            throw Fault("frame is too long")
        }
        var mask: SIMD4<UInt8>?
        if head[1] & 0x80 != 0 { mask = SIMD4(head.suffix(4)) }
        left = length
        maskPlace = 0
        if isControl {
            guard isLast, length <= 125 else { throw Fault("control frame is too long") }
            return Frame(opcode: opcode, isLast: true, isCompressed: false, mask: mask)
        }
        guard opcode == 0 || isFirst else { throw Fault("frame has an unknown opcode") }
        guard opcode != 0 || message != nil else { throw Fault("message has no beginning") }
        guard opcode == 0 || message == nil else { throw Fault("message has no end") }
        let kind = message ?? (opcode, hasFlag)
        message = isLast ? nil : kind
        return Frame(opcode: kind.opcode, isLast: isLast, isCompressed: kind.isCompressed, mask: mask)
    }

    /// Appends a frame with this payload.
    static func append(_ payload: [UInt8], opcode: UInt8, isLast: Bool, mask: SIMD4<UInt8>?, to output: inout [UInt8]) {
        output.append(opcode | (isLast ? 0x80 : 0))
        let bit: UInt8 = mask == nil ? 0 : 0x80
        let lengthBytes = payload.count < 126 ? 0 : payload.count < 65536 ? 2 : 8
        output.append(bit | (lengthBytes == 0 ? UInt8(payload.count) : lengthBytes == 2 ? 126 : 127))
        for place in (0..<lengthBytes).reversed() {
            output.append(UInt8(truncatingIfNeeded: payload.count >> (8 * place)))
        }
        guard let mask else {
            output += payload
            return
        }
        for place in 0..<4 { output.append(mask[place]) }
        for (index, byte) in payload.enumerated() { output.append(byte ^ mask[index & 3]) }
    }
}
