import Testing

@testable import HttpWare
@testable import HttpWareTesting

@Suite struct RecoveryProbeTests {
    private let hand: HandTurnedLoop
    private let closed: ReservedPort
    private let open: ReservedPort

    init() throws {
        hand = try HandTurnedLoop()
        closed = try ReservedPort()
        open = try ReservedPort()
        closed.refuse()
    }

    /// An unreachable service of this number of endpoints that refuse connections, and then one that accepts them.
    private func service(refusing count: Int, accepting: Bool = true) -> UpstreamService {
        let refusing = (0..<count).map { _ in Endpoint(host: "127.0.0.1", port: closed.number) }
        let accepting = accepting ? [Endpoint(host: "127.0.0.1", port: open.number)] : []
        return UpstreamService(name: "a", endpoints: refusing + accepting)
    }

    /// The milliseconds after which the service is reachable again, tried up to `most`; `nil` if it is not.
    private func recovery(of service: UpstreamService, upTo most: Int) -> Int? {
        for time in stride(from: 50, through: most, by: 50) {
            hand.advance(by: .milliseconds(50))
            if !service.notes.reachability.isDown { return time }
        }
        return nil
    }

    @Test(arguments: [(0, 50), (1, 150), (2, 350), (3, 750), (4, 1250), (5, 1750), (6, 2250)])
    func `the endpoints are tried in turn, with pauses of 50 ms that double up to 500 ms`(refusing: Int, time: Int) {
        let service = service(refusing: refusing)
        let watch = service.notes.reachability.watch { _ in }
        #expect(service.notes.reachability.failed())
        RecoveryProbe.start(service, hand.transport)
        #expect(recovery(of: service, upTo: 5_000) == time)
        withExtendedLifetime(watch) {}
    }

    @Test func `a service that nothing watches any more is not tried`() {
        let service = service(refusing: 0)
        var watch: ServiceReachability.Watch? = service.notes.reachability.watch { _ in }
        #expect(service.notes.reachability.failed() && watch != nil)
        RecoveryProbe.start(service, hand.transport)
        watch = nil
        hand.advance(by: .seconds(1))
        #expect(accepted() == 0)
    }

    @Test func `a service that a request has reached meanwhile is not tried`() {
        let service = service(refusing: 0)
        let watch = service.notes.reachability.watch { _ in }
        #expect(service.notes.reachability.failed())
        RecoveryProbe.start(service, hand.transport)
        service.notes.reachability.reached()
        hand.advance(by: .seconds(1))
        #expect(accepted() == 0)
        withExtendedLifetime(watch) {}
    }

    @Test func `the connection of a probe is closed, and made once`() throws {
        let service = service(refusing: 0)
        let watch = service.notes.reachability.watch { _ in }
        #expect(service.notes.reachability.failed())
        RecoveryProbe.start(service, hand.transport)
        #expect(recovery(of: service, upTo: 1_000) == 50)
        hand.advance(by: .seconds(10))
        guard case .accepted(let descriptor, _) = Socket.accept(open.listener) else {
            Issue.record("no connection")
            return
        }
        let end = FarEnd(descriptor)
        #expect(end.readPieces().isEmpty && end.isEnded)
        #expect(accepted() == 0)
        withExtendedLifetime(watch) {}
    }

    @Test func `after ten minutes the service counts as reachable, so that requests try for themselves`() {
        let service = service(refusing: 1, accepting: false)
        let watch = service.notes.reachability.watch { _ in }
        #expect(service.notes.reachability.failed())
        RecoveryProbe.start(service, hand.transport)
        for _ in 0..<1199 { hand.advance(by: .milliseconds(500)) }
        #expect(service.notes.reachability.isDown)
        hand.advance(by: .seconds(1))
        #expect(!service.notes.reachability.isDown)
        withExtendedLifetime(watch) {}
    }

    /// The number of connections that were made to the open endpoint.
    private func accepted() -> Int {
        var count = 0
        while case .accepted(let descriptor, _) = Socket.accept(open.listener) {
            Socket.close(descriptor)
            count += 1
        }
        return count
    }
}
