/// Passes the messages of one direction of a WebSocket through a filter. RFC 6455 §5.
///
/// Each message gets its own filter. Frames are split differently, which an intermediary may do if no extension is in use (§5.4). One
/// instance serves one direction of one connection.
public final class WebSocketFilter: ContentFilter {
    private let makeFilter: () -> any ContentFilter
    private var frames: WebSocketFrames
    /// The current message; control frames may come between its frames.
    private var message: (filter: any ContentFilter, hasFrames: Bool)?
    private var control: [UInt8] = []

    /// Makes a filter for each message of a direction. Only clients mask their frames.
    public init(isMasked: Bool, _ makeFilter: @escaping () -> any ContentFilter) {
        frames = WebSocketFrames(isMasked: isMasked)
        self.makeFilter = makeFilter
    }

    public func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        var place = 0
        while let part = try frames.next(in: input, from: &place) {
            try part.withPayload(of: input) { try filter($0, of: part.frame, isEnd: part.endsFrame, into: &output) }
        }
    }

    /// Does nothing: an interrupted frame has been forwarded as far as it arrived.
    public func finish(into output: inout [UInt8]) throws {}

    private func filter(
        _ payload: UnsafeRawBufferPointer, of frame: WebSocketFrames.Frame, isEnd: Bool, into output: inout [UInt8]
    ) throws {
        if frame.isControl {
            control += payload
            if isEnd { try sendControl(frame, into: &output) }
            return
        }
        let message = message ?? (makeFilter(), false)
        var filtered: [UInt8] = []
        try message.filter.filter(payload, into: &filtered)
        let isLast = isEnd && frame.isLast
        if isLast { try message.filter.finish(into: &filtered) }
        self.message = isLast ? nil : (message.filter, message.hasFrames || !filtered.isEmpty)
        guard isLast || !filtered.isEmpty else { return }
        let opcode = message.hasFrames ? 0 : frame.opcode
        WebSocketFrames.append(filtered, opcode: opcode, isLast: isLast, mask: frame.mask, to: &output)
    }

    private func sendControl(_ frame: WebSocketFrames.Frame, into output: inout [UInt8]) throws {
        let filter = makeFilter()
        var filtered: [UInt8] = []
        // The status of a close frame is filtered too, because it could hold any bytes.
        try control.withUnsafeBytes { try filter.filter($0, into: &filtered) }
        try filter.finish(into: &filtered)
        control = []
        guard filtered.count <= 125 else { throw WebSocketFrames.Fault("control frame is too long") }
        WebSocketFrames.append(filtered, opcode: frame.opcode, isLast: true, mask: frame.mask, to: &output)
    }
}
