public import HttpWare

/// Reads the messages inside one direction of an exchange while the bytes arrive, for all supported forms.
///
/// One instance serves one direction of one exchange, on one thread at a time.
public struct MessageReader {
    private enum Form {
        case webSocket(WebSocketReader)
        case events(EventReader)
        case grpc(GrpcReader)
    }

    private var form: Form
    /// Removes content codings; `nil` if there are none.
    private let decoder: ContentDecoder?
    private var isBroken = false

    /// The maximum number of bytes that a piece of content is decoded to, since that is done on a loop. If a piece grows
    /// more, the reader stops.
    private static let mostDecoded = 1 << 20

    /// A reader of WebSocket messages. The fields of the response with status 101 state the extensions.
    public init(webSocket direction: CapturedPiece.Direction, response: CapturedMessage, limit: Int) {
        let extensions = WebSocketExtensions(response.values(of: "sec-websocket-extensions"))
        form = .webSocket(WebSocketReader(direction, extensions: extensions, limit: limit))
        decoder = nil
    }

    /// A reader of the content of a request or a response; `nil` if the content holds neither events nor gRPC messages.
    public init?(content direction: CapturedPiece.Direction, of message: CapturedMessage, limit: Int) {
        if direction == .receive, message.fields.hasMediaType("text/event-stream", isPrefix: true) {
            form = .events(EventReader(limit: limit))
        } else if message.fields.hasMediaType("application/grpc", isPrefix: true),
            !message.fields.hasMediaType("application/grpc-web-text", isPrefix: true)
        {
            form = .grpc(GrpcReader(direction, encoding: message.values(of: "grpc-encoding").first, limit: limit))
        } else {
            return nil
        }
        guard let decoder = ContentDecoder(message.values(of: "content-encoding")) else { return nil }
        self.decoder = decoder.isIdentity ? nil : decoder
    }

    /// Reads bytes as they were on the wire; returns the messages that they complete.
    public mutating func read(_ input: UnsafeRawBufferPointer, at time: WallTime) -> [CapturedPiece] {
        guard !isBroken else { return [] }
        guard let decoder else { return readPlain(input, at: time) }
        var pieces: [CapturedPiece] = []
        do {
            try decoder.decode(input, upTo: MessageReader.mostDecoded) { pieces += readPlain($0, at: time) }
            if decoder.isPending { isBroken = true }
        } catch {
            isBroken = true
        }
        return pieces
    }

    private mutating func readPlain(_ input: UnsafeRawBufferPointer, at time: WallTime) -> [CapturedPiece] {
        // Moved out while it is changed, so that its buffers are not copied.
        switch form {
        case .webSocket(var reader):
            form = .events(EventReader(limit: 0))
            defer { form = .webSocket(reader) }
            return reader.read(input, at: time)
        case .events(var reader):
            form = .events(EventReader(limit: 0))
            defer { form = .events(reader) }
            var pieces: [CapturedPiece] = []
            var place = 0
            while let event = reader.next(in: input, from: &place) {
                let form = CapturedPiece.Form.event(type: event.type, id: event.id)
                pieces.append(CapturedPiece(.receive, form, time: time, data: event.data, size: event.size))
            }
            return pieces
        case .grpc(var reader):
            form = .events(EventReader(limit: 0))
            defer { form = .grpc(reader) }
            return reader.read(input, at: time)
        }
    }
}
