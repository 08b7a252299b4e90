/// An ended exchange, stored for inspection: immutable, and passed between threads.
///
/// Its values are as received; `ExchangeReport` converts them into texts, and hides credentials.
public struct RecordedExchange: Sendable {
    /// The exchange's number, unique in this process. Its capture has the same number.
    public internal(set) var number: UInt64 = 0
    /// The exchange's own id, if it was created.
    public internal(set) var id: String?
    var listener = ""
    var route: String?
    var service: String?
    var endpoint: String?
    var client: IPAddress?
    /// The intercepted tunnel that carried the request.
    var tunnel: RecordedTunnel?
    /// Why the tunnel that the exchange opened passes unread, on a listener that intercepts tunnels.
    var unread: UnreadReason?
    /// Whether the client asked for https.
    var isSecure = false
    /// The group of the key exchange of the client's connection.
    var keyExchange: KeyExchange?
    var method = HttpMethod.unread
    var version: HttpVersion?
    var target = WareTrail.Text()
    var host = WareTrail.Text()
    var status: HttpStatus?
    var end: ExchangeEnd?
    var responder = Responder.upstream
    var cacheResult: CacheResult?
    var failure: GatewayError?
    var rules: [Int] = []
    /// Times, bytes and the actions of the wares.
    public internal(set) var record = ExchangeRecord()

    /// The maximum length of a stored target or host in bytes.
    private static let mostTarget = 2048

    /// When it ended, in nanoseconds of the loops' clock: for ordering the exchanges of several loops.
    public var endedAt: Int64 { record.ended }

    /// The approximate memory use in bytes.
    public var bytes: Int { MemoryLayout<RecordedExchange>.stride + record.trail.bytes + (tunnel?.bytes ?? 0) }

    /// Takes the values of an ended exchange. Its record is swapped with the one stored here, so that memory is reused, and nothing is
    /// copied or allocated.
    mutating func takeExchange(_ exchange: Exchange, isHeld: Bool, endpoint: Endpoint?, number: UInt64) {
        let received = exchange.heldRequest.target.received.range.prefix(RecordedExchange.mostTarget)
        let named = exchange.heldRequest.target.receivedNames.host.range.prefix(RecordedExchange.mostTarget)
        exchange.heldRequest.target.bytes.withUnsafeBufferPointer { bytes in
            target = exchange.record.trail.add(UnsafeBufferPointer(rebasing: bytes[received]))
            host = exchange.record.trail.add(UnsafeBufferPointer(rebasing: bytes[named]))
        }
        self.number = number
        id = exchange.idIfMade
        listener = exchange.listener
        route = exchange.route
        service = exchange.service
        failure = exchange.failure
        // The name of an unreachable endpoint is recorded, too.
        self.endpoint = exchange.upstreamAddress ?? (failure?.side == .upstream ? endpoint?.name : nil)
        client = exchange.client
        tunnel = exchange.connection.tunnel?.recorded
        unread = exchange.unread
        isSecure =
            exchange.isForward && tunnel == nil ? exchange.heldRequest.target.isSecure : exchange.connection.isSecure
        keyExchange = exchange.connection.keyExchange
        method = exchange.heldRequest.receivedMethod
        version = exchange.heldRequest.receivedVersion
        status = exchange.finalStatus
        end = exchange.end
        responder = exchange.responder
        cacheResult = exchange.cacheResult
        rules = exchange.rules
        if isHeld {
            // Other code may still read it.
            record = exchange.record
        } else {
            swap(&record, &exchange.record)
        }
    }
}
