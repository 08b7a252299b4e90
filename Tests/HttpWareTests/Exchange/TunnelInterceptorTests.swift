import HttpWareTesting
import Testing

@testable import HttpWare

/// The questions of a driver to the interceptor of its listener, which is any object here.
@Suite struct TunnelInterceptorTests {
    /// Unchecked: used on the thread of the test only.
    private final class Scripted: TunnelInterceptor, @unchecked Sendable {
        var plan: ExchangePlan?
        var opensTunnels = false
        var ownAnswer: HttpResponse?
        private(set) var asked: [String] = []

        func plan(for driver: ExchangeDriver) -> ExchangePlan? {
            asked.append("plan \(driver.exchange.heldRequest.method)")
            if opensTunnels { driver.interception = Interception(self) }
            return plan
        }

        func accept(_ driver: ExchangeDriver) {
            asked.append("accept")
            driver.exchange.responder = .interception
            driver.answerClient(with: HttpResponse(.ok), from: driver.chain.middlewares.count - 1)
        }

        func answers(_ driver: ExchangeDriver) -> Bool {
            asked.append("answers")
            guard let ownAnswer else { return false }
            driver.exchange.responder = .gateway
            driver.answerClient(with: ownAnswer, from: driver.chain.middlewares.count - 1)
            return true
        }

        func takeTunnel(of driver: ExchangeDriver, _ sink: any ResponseSink) {
            asked.append("take")
            driver.end(.cutOff)
        }
    }

    private let hand: HandTurnedLoop
    private let server: LoopListener
    private let origin = ScriptedConnector()
    private let interceptor = Scripted()
    private let notes = Notes()

    init() throws {
        hand = try HandTurnedLoop()
        let service = UpstreamService(name: "passthrough", endpoints: [], isPassthrough: true)
        var settings = ServerSettings()
        settings.isForward = true
        var forward = ForwardRules()
        forward.deniesPrivate = false
        server = LoopListener(
            name: "proxy", transport: hand.transport, settings: settings, forward: forward,
            router: SinglePlan(
                listenerPlan: ExchangePlan(
                    chain: try .of([OnRequest.noting("router's", in: notes)]), service: service, route: "all")))
        server.connector = origin
        server.interceptor = interceptor
    }

    private func ownPlan() throws -> ExchangePlan {
        ExchangePlan(chain: try .of([OnRequest.noting("interceptor's", in: notes)]), service: nil, route: nil)
    }

    /// The answer to a head.
    private func answer(_ head: String) throws -> String {
        let (near, far) = try hand.pair()
        server.accept(near.detach(), from: SocketAddress("192.0.2.9:5000"))
        far.send(head + "\r\n\r\n")
        hand.turn()
        defer {
            server.closeAll()
            hand.turn()
        }
        return far.readTexts().joined()
    }

    @Test func `without a plan of the interceptor, the request takes the router's`() throws {
        let answer = try answer("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443")
        #expect(answer.hasPrefix("HTTP/1.1 200 "))
        #expect(interceptor.asked == ["plan CONNECT"] && notes.all == ["router's request"])
        #expect(origin.streams.count == 1)
    }

    @Test func `a tunnel is accepted after the wares of the interceptor's plan, and taken with the response`() throws {
        interceptor.plan = try ownPlan()
        interceptor.opensTunnels = true
        _ = try answer("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443")
        #expect(interceptor.asked == ["plan CONNECT", "accept", "take"] && notes.all == ["interceptor's request"])
        #expect(origin.streams.isEmpty)
    }

    @Test func `a ware that refuses the CONNECT leaves nothing to accept`() throws {
        let refuses = OnRequest { _, _ in .abort(with: HttpResponse(.forbidden)) }
        interceptor.plan = ExchangePlan(chain: try .of([refuses]), service: nil, route: nil)
        interceptor.opensTunnels = true
        #expect(try answer("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443").hasPrefix("HTTP/1.1 403 "))
        #expect(interceptor.asked == ["plan CONNECT"])
    }

    @Test(arguments: [nil, HttpResponse(.ok, content: .text("own page"))])
    func `a request that no service takes is answered by the interceptor, or else with 404`(own: HttpResponse?) throws {
        interceptor.plan = try ownPlan()
        interceptor.ownAnswer = own
        let answer = try answer("GET http://own.test/ HTTP/1.1\r\nHost: own.test")
        #expect(interceptor.asked == ["plan GET", "answers"])
        #expect(own == nil ? answer.hasPrefix("HTTP/1.1 404 ") : answer.hasSuffix("own page"))
    }
}
