public import HttpWare

/// Reads the messages of one direction of a WebSocket while the bytes arrive. RFC 6455 §5, RFC 7692.
///
/// Frames are unmasked, fragments joined, and compressed messages inflated. Memory is limited: only the beginning of a message is
/// kept. A protocol error ends the reading; it does not affect the connection.
public struct WebSocketReader {
    private enum Place { case head, payload }

    private let direction: CapturedPiece.Direction
    private let inflater: MessageInflater?
    private var place = Place.head
    private var head: [UInt8] = []
    private var opcode: UInt8 = 0
    private var isLast = false
    private var left: UInt64 = 0
    private var mask: [UInt8] = []
    private var maskPlace = 0
    private var message: PieceBuffer
    private var messageOpcode: UInt8?
    private var isCompressed = false
    private var control: PieceBuffer
    /// Whether reading has ended, because the peer violated the protocol or a message was too large.
    public private(set) var isBroken = false

    /// The largest size of a compressed message after inflating.
    private static let longestInflated = 64 << 20

    /// A reader for one direction. Keeps at most `limit` bytes of each message.
    public init(_ direction: CapturedPiece.Direction, extensions: WebSocketExtensions, limit: Int) {
        self.direction = direction
        message = PieceBuffer(limit: limit)
        control = PieceBuffer(limit: 125)
        let forgets = direction == .send ? extensions.clientForgets : extensions.serverForgets
        inflater =
            extensions.isDeflated
            ? MessageInflater(keepsContext: !forgets, longest: WebSocketReader.longestInflated) : nil
    }

    /// Reads bytes; returns the messages that they complete.
    public mutating func read(_ input: UnsafeRawBufferPointer, at time: WallTime) -> [CapturedPiece] {
        var pieces: [CapturedPiece] = []
        var rest = input[...]
        while !isBroken {
            if place == .head {
                guard readHead(&rest) else { break }
                if isBroken { break }
            }
            let part = rest.prefix(Int(min(left, UInt64(rest.count))))
            rest = rest.dropFirst(part.count)
            left -= UInt64(part.count)
            readPayload(UnsafeRawBufferPointer(rebasing: part))
            guard left == 0, !isBroken else { break }
            place = .head
            if let piece = endFrame(at: time) { pieces.append(piece) }
        }
        return pieces
    }

    /// Reads the head of a frame; returns false if it is still incomplete.
    private mutating func readHead(_ rest: inout Slice<UnsafeRawBufferPointer>) -> Bool {
        while head.count < 2 || head.count < WebSocketReader.headLength(head) {
            guard let byte = rest.popFirst() else { return false }
            head.append(byte)
        }
        defer { head.removeAll(keepingCapacity: true) }
        isLast = head[0] & 0x80 != 0
        opcode = head[0] & 0x0f
        let short = head[1] & 0x7f
        let lengthBytes = short == 126 ? 2 : short == 127 ? 8 : 0
        left = lengthBytes == 0 ? UInt64(short) : head[2..<2 + lengthBytes].reduce(0) { $0 << 8 | UInt64($1) }
        mask = head[1] & 0x80 != 0 ? Array(head.suffix(4)) : []
        maskPlace = 0
        place = .payload
        let isFirst = opcode == 1 || opcode == 2
        let hasFlag = head[0] & 0x40 != 0
        let usesUnknown = head[0] & 0x30 != 0 || hasFlag && (inflater == nil || !isFirst)
        if opcode & 0x08 != 0 {
            if !isLast || left > 125 || usesUnknown { isBroken = true }
        } else if opcode == 0 {
            if messageOpcode == nil || usesUnknown { isBroken = true }
        } else if !isFirst || messageOpcode != nil || usesUnknown {
            isBroken = true
        } else {
            messageOpcode = opcode
            isCompressed = hasFlag
        }
        return true
    }

    private static func headLength(_ head: [UInt8]) -> Int {
        let short = head[1] & 0x7f
        return 2 + (short == 126 ? 2 : short == 127 ? 8 : 0) + (head[1] & 0x80 != 0 ? 4 : 0)
    }

    private mutating func readPayload(_ part: UnsafeRawBufferPointer) {
        guard !part.isEmpty else { return }
        if mask.isEmpty {
            take(part)
            return
        }
        let plain = [UInt8](unsafeUninitializedCapacity: part.count) { bytes, count in
            for index in part.indices { bytes[index] = part[index] ^ mask[(maskPlace + index) & 3] }
            count = part.count
        }
        maskPlace = (maskPlace + part.count) & 3
        plain.withUnsafeBytes { take($0) }
    }

    private mutating func take(_ part: UnsafeRawBufferPointer) {
        if opcode & 0x08 != 0 {
            control.append(part)
        } else if isCompressed, let inflater {
            do throws(MessageInflater.Fault) {
                try inflater.inflate(part) { message.append($0) }
            } catch {
                isBroken = true
            }
        } else {
            message.append(part)
        }
    }

    private mutating func endFrame(at time: WallTime) -> CapturedPiece? {
        if opcode & 0x08 != 0 {
            let (bytes, size) = control.take()
            return CapturedPiece(direction, .webSocket(opcode: opcode), time: time, data: bytes, size: size)
        }
        guard isLast, let opcode = messageOpcode else { return nil }
        if isCompressed, let inflater {
            do throws(MessageInflater.Fault) {
                try inflater.endMessage { message.append($0) }
            } catch {
                isBroken = true
                return nil
            }
        }
        messageOpcode = nil
        isCompressed = false
        let (bytes, size) = message.take()
        return CapturedPiece(direction, .webSocket(opcode: opcode), time: time, data: bytes, size: size)
    }
}
