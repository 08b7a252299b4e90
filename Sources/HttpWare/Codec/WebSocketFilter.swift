/// Passes the messages of one direction of a WebSocket through a filter. RFC 6455 §5.
///
/// Each message gets its own filter. Frames are split differently, which an intermediary may do if no extension is in use (§5.4). One
/// instance serves one direction of one connection.
public final class WebSocketFilter: ContentFilter {
    private let makeFilter: () -> any ContentFilter
    /// The rest of the current frame's payload; `nil` while its head is read.
    private var left: Int?
    private var head: [UInt8] = []
    private var mask: [UInt8] = []
    private var maskPlace = 0
    private var isLast = false
    private var opcode: UInt8 = 0
    /// The current message; control frames may come between its frames.
    private var message: (filter: any ContentFilter, opcode: UInt8, hasFrames: Bool)?
    private var control: [UInt8] = []
    private var isControl: Bool { opcode & 0x08 != 0 }
    private let isMasked: Bool

    /// A peer violated the protocol.
    public struct Fault: Error, CustomStringConvertible {
        public let description: String
    }

    /// Makes a filter for each message of a direction. Only clients mask their frames.
    public init(isMasked: Bool, _ makeFilter: @escaping () -> any ContentFilter) {
        self.isMasked = isMasked
        self.makeFilter = makeFilter
    }

    public func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        var rest = input
        while true {
            if left == nil, try !readHead(&rest) { return }
            let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(left ?? 0))
            rest = UnsafeRawBufferPointer(rebasing: rest[piece.count...])
            left? -= piece.count
            try readPayload(piece, into: &output)
            if left == 0 { left = nil } else { return }
        }
    }

    /// Does nothing: an interrupted frame has been forwarded as far as it arrived.
    public func finish(into output: inout [UInt8]) throws {}

    // MARK: Reading frames

    /// Reads the head of a frame; false if more bytes are needed.
    private func readHead(_ rest: inout UnsafeRawBufferPointer) throws -> Bool {
        while true {
            let wanted = headLength
            if head.count >= 2, head.count == wanted { break }
            let more = rest.prefix(wanted - head.count)
            guard more.count > 0 else { return false }
            head.append(contentsOf: more)
            rest = UnsafeRawBufferPointer(rebasing: rest[more.count...])
        }
        guard head[0] & 0x70 == 0 else { throw Fault(description: "a WebSocket frame uses an extension") }
        guard (head[1] & 0x80 != 0) == isMasked else {
            throw Fault(description: "a WebSocket frame is masked by the wrong side")
        }
        isLast = head[0] & 0x80 != 0
        opcode = head[0] & 0x0f
        let short = Int(head[1] & 0x7f)
        let lengthBytes = short == 126 ? 2 : short == 127 ? 8 : 0
        let length =
            lengthBytes == 0 ? UInt64(short) : head[2..<2 + lengthBytes].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        guard length <= UInt64(Int.max) else { throw Fault(description: "a WebSocket frame is too long") }
        mask = isMasked ? Array(head[(2 + lengthBytes)...]) : []
        maskPlace = 0
        left = Int(length)
        head.removeAll(keepingCapacity: true)
        if isControl {
            guard isLast, length <= 125 else { throw Fault(description: "a WebSocket control frame is too long") }
            control = []
        } else if opcode == 0 {
            guard message != nil else { throw Fault(description: "a WebSocket message has no beginning") }
        } else {
            guard message == nil else { throw Fault(description: "a WebSocket message has no end") }
            message = (makeFilter(), opcode, false)
        }
        return true
    }

    private var headLength: Int {
        guard head.count >= 2 else { return 2 }
        let short = head[1] & 0x7f
        return 2 + (short == 126 ? 2 : short == 127 ? 8 : 0) + (head[1] & 0x80 != 0 ? 4 : 0)
    }

    private func readPayload(_ piece: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        var payload = Array(piece)
        if isMasked {
            for index in payload.indices { payload[index] ^= mask[(maskPlace + index) & 3] }
            maskPlace = (maskPlace + payload.count) & 3
        }
        let isWhole = left == 0
        if isControl {
            control += payload
            if isWhole { try sendControl(into: &output) }
            return
        }
        guard let message else { return }
        var filtered: [UInt8] = []
        try payload.withUnsafeBytes { try message.filter.filter($0, into: &filtered) }
        if isWhole, isLast {
            try message.filter.finish(into: &filtered)
            writeFrame(filtered, message.hasFrames ? 0 : message.opcode, isLast: true, into: &output)
            self.message = nil
        } else if !filtered.isEmpty {
            writeFrame(filtered, message.hasFrames ? 0 : message.opcode, isLast: false, into: &output)
            self.message?.hasFrames = true
        }
    }

    private func sendControl(into output: inout [UInt8]) throws {
        let filter = makeFilter()
        var filtered: [UInt8] = []
        // The status of a close frame is filtered too, because it could hold any bytes.
        try control.withUnsafeBytes { try filter.filter($0, into: &filtered) }
        try filter.finish(into: &filtered)
        guard filtered.count <= 125 else { throw Fault(description: "a WebSocket control frame is too long") }
        writeFrame(filtered, opcode, isLast: true, into: &output)
    }

    // MARK: Writing frames

    private func writeFrame(_ payload: [UInt8], _ opcode: UInt8, isLast: Bool, into output: inout [UInt8]) {
        output.append(opcode | (isLast ? 0x80 : 0))
        let masked: UInt8 = isMasked ? 0x80 : 0
        switch payload.count {
        case ..<126: output.append(masked | UInt8(payload.count))
        case ..<65536: output += [masked | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
        default:
            output.append(masked | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                output.append(UInt8(truncatingIfNeeded: payload.count >> shift))
            }
        }
        guard isMasked else {
            output += payload
            return
        }
        output += mask
        for (index, byte) in payload.enumerated() { output.append(byte ^ mask[index & 3]) }
    }
}
