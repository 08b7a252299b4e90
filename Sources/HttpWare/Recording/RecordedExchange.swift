/// An exchange that has ended, as it is kept for those who look: immutable, and handed between threads.
///
/// Its values are as they were received; `ExchangeReport` makes texts of them, and hides credentials.
public struct RecordedExchange: Sendable {
    /// Its own in this process; of one loop a later one has a larger number.
    public internal(set) var number: UInt64 = 0
    /// The exchange's own id, if it was made.
    public internal(set) var id: String?
    var listener = ""
    var route: String?
    var service: String?
    var endpoint: String?
    var client: IPAddress?
    /// The tunnel that the request came in, where the gateway reads it.
    var tunnel: RecordedTunnel?
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
    /// Times, bytes and what the wares did.
    public internal(set) var record = ExchangeRecord()

    /// The most bytes of a target or a host that are kept.
    private static let mostTarget = 2048

    /// When it ended, in nanoseconds of the loops' clock: for putting the exchanges of several loops in order.
    public var endedAt: Int64 { record.ended }

    /// How much memory it holds, about.
    public var bytes: Int { MemoryLayout<RecordedExchange>.stride + record.trail.bytes + (tunnel?.bytes ?? 0) }

    /// Takes what is known of an exchange that has ended. Its record is exchanged for the one that was kept here, whose memory
    /// is used again; so nothing is copied or allocated.
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
        // One that no connection could be made to is worth its name, too.
        self.endpoint = exchange.upstreamAddress ?? (failure?.side == .upstream ? endpoint?.name : nil)
        client = exchange.client
        tunnel = exchange.connection.tunnel?.recorded
        method = exchange.heldRequest.receivedMethod
        version = exchange.heldRequest.receivedVersion
        status = exchange.finalStatus
        end = exchange.end
        responder = exchange.responder
        cacheResult = exchange.cacheResult
        rules = exchange.rules
        if isHeld {
            // The holder may still read it.
            record = exchange.record
        } else {
            swap(&record, &exchange.record)
        }
    }
}
