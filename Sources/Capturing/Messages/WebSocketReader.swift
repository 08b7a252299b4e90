public import HttpWare

/// Reads the messages of one direction of a WebSocket while the bytes arrive. RFC 6455 §5, RFC 7692.
///
/// Frames are unmasked, fragments joined, and compressed messages inflated. Memory is limited: only the beginning of a message is
/// kept. A protocol error ends the reading; it does not affect the connection.
public struct WebSocketReader {
    private let direction: CapturedPiece.Direction
    private let inflater: MessageInflater?
    private var frames: WebSocketFrames
    private var message: PieceBuffer
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
        frames = WebSocketFrames(isMasked: nil, isDeflated: inflater != nil)
    }

    /// Reads bytes; returns the messages that they complete.
    public mutating func read(_ input: UnsafeRawBufferPointer, at time: WallTime) -> [CapturedPiece] {
        var pieces: [CapturedPiece] = []
        guard !isBroken else { return pieces }
        do {
            var place = 0
            while let part = try frames.next(in: input, from: &place) {
                try part.withPayload(of: input) { payload throws(MessageInflater.Fault) in try take(payload, part.frame)
                }
                guard part.endsFrame, part.frame.isLast else { continue }
                let (data, size) = try end(part.frame)
                let form = CapturedPiece.Form.webSocket(opcode: part.frame.opcode)
                pieces.append(CapturedPiece(direction, form, time: time, data: data, size: size))
            }
        } catch {
            isBroken = true
        }
        return pieces
    }

    private mutating func take(_ payload: UnsafeRawBufferPointer, _ frame: WebSocketFrames.Frame) throws(MessageInflater
        .Fault)
    {
        if frame.isControl {
            control.append(payload)
        } else if frame.isCompressed, let inflater {
            try inflater.inflate(payload) { message.append($0) }
        } else {
            message.append(payload)
        }
    }

    private mutating func end(_ frame: WebSocketFrames.Frame) throws(MessageInflater.Fault) -> (
        bytes: [UInt8], size: Int
    ) {
        guard !frame.isControl else { return control.take() }
        if frame.isCompressed, let inflater { try inflater.endMessage { message.append($0) } }
        return message.take()
    }
}
