public import HttpWare

/// An exchange as it passed through the gateway: both sides of each message, as far as they are kept.
public struct CapturedExchange: Sendable {
    /// The kind of the exchange.
    public enum Kind: String, Sendable, Codable, CaseIterable {
        case http, websocket, sse, grpc
    }

    /// The number that identifies it in this process; its record has the same number.
    public var id: Int
    public var kind = Kind.http
    /// Whether the exchange is still running.
    public var isOpen = true
    /// The start time.
    public var started: WallTime
    /// The duration so far, in nanoseconds.
    public var duration: Int64 = 0
    /// The target URI: absolute, with its path and query as the client wrote them, and the values of secret parameters masked.
    /// It has no host if the request named none.
    public var url: String
    public var method: String
    /// The version, such as `HTTP/1.1`.
    public var version: String
    /// The status of the response to the client; `nil` before the response.
    public var status: Int?
    /// The reason phrase of that response; `nil` if it is the standard one.
    public var reason: String?
    /// Whether the reason phrase is not UTF-8: its characters stand for bytes.
    public var isReasonRaw = false
    public var listener: String
    public var route: String?
    public var service: String?
    /// The addresses of the client and of the last endpoint, with ports.
    public var client: String? {
        get { clientText ?? peer.map { "\($0)" } }
        set { (clientText, peer) = (newValue, nil) }
    }
    public var server: String?
    /// The client's address as the connection reports it; `client` converts it to text.
    var peer: SocketAddress?
    private var clientText: String?
    /// TLS on the connections of the client and of the last endpoint; all exchanges of a connection share it.
    public var tls = CapturedTls()
    /// The request as the client sent it, and as the origin server received it; `nil` if it was not sent.
    public var request: CapturedMessage
    public var sentRequest: CapturedMessage?
    /// The response as the origin server sent it, and as the client received it.
    public var receivedResponse: CapturedMessage?
    public var response: CapturedMessage?
    /// The messages of a WebSocket, events, and messages of gRPC, in the order of their times.
    public var messages: [CapturedPiece] = []
    /// The names of GraphQL operations.
    public var operations: [String] = []
    /// Whether the exchange ended before its response was complete.
    public var isCutOff = false
    /// The fault of the exchange, as its record names it.
    public var fault: String?
    /// The record with each ware's decision; `nil` while the exchange runs.
    var record: CapturedRecord?
    /// The record as texts, which are made at each call.
    public var report: ExchangeReport? {
        get { record?.report }
        set { record = newValue.map { CapturedRecord(.report($0)) } }
    }
    /// Sets a report that is read only when it is needed.
    public mutating func setReport(reading read: @escaping @Sendable () -> ExchangeReport?) {
        record = CapturedRecord(.unread(read))
    }
    /// The summary for filters, if the row was read without its record.
    public var summary: ReportSummary?
    /// The times of the phases. Only an imported exchange has them, because it has no record.
    public var timings: CapturedTimings?
    /// The arrival times of pieces of the response's content, if the recording has them.
    public var progress: [ContentProgress] = []
    public var isPinned = false
    public var comment = ""
    /// The number of the capture that this one repeats.
    public var replayOf: Int?
    /// The values before they were masked, in memory only: they are shown and archived only if a
    /// user asks for it, and never written to a disk.
    public internal(set) var secrets: CapturedSecrets?
    /// The numbers of the rules that acted on the exchange.
    public var rules: [Int] = []

    /// An exchange that has begun.
    public init(
        id: Int, started: WallTime, method: String, url: String, version: String, listener: String,
        request: CapturedMessage
    ) {
        self.id = id
        self.started = started
        self.method = method
        self.url = url
        self.version = version
        self.listener = listener
        self.request = request
    }
}

/// A request or a response on one side of the chain.
public struct CapturedMessage: Sendable, Equatable {
    /// A field line; repeated fields stay separate.
    public struct Field: Sendable, Equatable {
        public var name: String
        /// The value as text. If its bytes are not UTF-8, they were read as ISO 8859-1.
        public var value: String { didSet { raw = nil } }
        /// The bytes of the value if they are not UTF-8; otherwise `nil`.
        private var raw: [UInt8]?

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }

        /// A field whose value may be in any coding.
        public init(_ name: String, bytes: some Collection<UInt8>) {
            self.name = name
            value = ReceivedText.text(bytes)
            if value.utf8.count != bytes.count { raw = Array(bytes) }
        }

        /// The bytes of the value, as they were received.
        public var bytes: [UInt8] { raw ?? Array(value.utf8) }
        /// Whether the bytes are not UTF-8.
        public var isRaw: Bool { raw != nil }
    }

    public var fields: CapturedFields
    public var trailers = CapturedFields()
    public var content = CapturedContent()

    public init(fields: CapturedFields = []) { self.fields = fields }

    /// The values of a field, in order. The case of the name is ignored.
    public func values(of name: String) -> [String] { fields.values(of: name) }

    static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }
}

/// Content as it was on the wire: its beginning, and the size and digest of the whole.
public struct CapturedContent: Sendable, Equatable {
    /// The kept beginning of the content.
    public var kept: [UInt8] = []
    /// The number of bytes so far.
    public var size = 0
    /// The SHA-256 digest of the whole in hexadecimal; `nil` until the content has ended, or if all of it is kept.
    public var sha256: String?
    /// The number of bytes that were not kept because capturing fell behind.
    public var dropped = 0
    /// Whether content codings were already removed, although `Content-Encoding` names them. Archives keep content in this
    /// form.
    public var isDecoded = false
    /// The number of content bytes that the kept part stands for, if values in it were masked; otherwise `nil`.
    public var maskedFrom: Int?

    public init() {}

    /// Whether all of it is kept.
    public var isWhole: Bool { (maskedFrom ?? kept.count) == size }
}

/// A message inside an exchange: a WebSocket message, an event, or a gRPC message.
public struct CapturedPiece: Sendable, Equatable {
    public enum Direction: String, Sendable, Codable {
        /// From the client, and to the client.
        case send, receive
    }

    public enum Form: Sendable, Equatable {
        /// A WebSocket message with its opcode.
        case webSocket(opcode: UInt8)
        /// A server-sent event with its type and id.
        case event(type: String?, id: String?)
        /// A gRPC message; its fields are in the data.
        case grpc
    }

    public var direction: Direction
    public var form: Form
    public var time: WallTime
    /// The kept beginning of its content.
    public var data: [UInt8]
    /// The full size in bytes.
    public var size: Int
    /// Whether values in the data were masked.
    public var isMasked = false
    /// The data before its values were masked, in memory only: it is shown and archived only if a user asks for it, and
    /// never written to a disk.
    var original: [UInt8]?

    public init(_ direction: Direction, _ form: Form, time: WallTime, data: [UInt8], size: Int) {
        self.direction = direction
        self.form = form
        self.time = time
        self.data = data
        self.size = size
    }
}
