/// A request to another service, sent beside an exchange. Used on its loop's thread only.
final class BesideCall: HttpCall {
    private let plan: ExchangePlan
    private let request: HttpRequest
    private let limit: Duration
    private var receiver: (any BackgroundReceiver)?
    private weak var driver: ExchangeDriver?
    /// The driver's serial number while it carries this request.
    private var serial = 0

    init(_ plan: ExchangePlan, _ request: HttpRequest, _ limit: Duration, _ receiver: any BackgroundReceiver) {
        self.plan = plan
        self.request = request
        self.limit = limit
        self.receiver = receiver
    }

    func begin(on server: LoopListener, _ connection: ConnectionFacts) {
        guard let receiver = receiver.take() else { return }
        let driver = ExchangeDriver(server: server)
        driver.prepare(sink: BackgroundSink(driver, receiver), connection: connection)
        driver.outward.isBackground = true
        driver.outward.isBeside = true
        driver.plan = plan
        driver.exchange.heldRequest = request
        driver.exchange.serviceNotes = plan.service?.notes
        driver.exchange.timeouts.total = limit
        driver.exchange.record.started = driver.loop.now.nanoseconds
        driver.isObserved = false
        driver.inward.isWhole = true
        driver.phase = .middlewares
        driver.setDeadline()
        self.driver = driver
        serial = driver.serial
        server.transport.inEvent { driver.runMiddlewares() }
    }

    func cancel() {
        receiver = nil
        guard let driver, driver.serial == serial, driver.phase != .ended else { return }
        driver.transport.inEvent { driver.clientLeft() }
    }
}
