public import Capturing
public import HttpWare
import Synchronization

/// Makes exchanges fail on purpose: with a status, a reset, a truncated response, or a delay.
public struct Fault: Middleware, Postware {
    /// The status of the response in place of the origin's; `nil` sends the request on.
    public var status: HttpStatus?
    /// Whether the client's connection, or its stream, is reset instead of getting a response.
    public var abort: Bool
    /// The amount of response content that passes before the response is cut off; `nil` for all content.
    public var truncate: ByteCount?
    /// The delay of a request.
    public var delay: Duration?
    /// The share of requests to which this applies.
    public var ratio: Ratio
    let draws: Draws

    /// Whether the ware keeps the draws of the ratio.
    public var holdsState: Bool { ratio.value < 1 }

    /// With a seed, the same requests are chosen in every run, counted in the order in which they come.
    public init(
        status: HttpStatus? = nil, abort: Bool = false, truncate: ByteCount? = nil, delay: Duration? = nil,
        ratio: Ratio = 1.0, seed: Int? = nil
    ) {
        self.status = status
        self.abort = abort
        self.truncate = truncate
        self.delay = delay
        self.ratio = ratio
        draws = Draws(seed: seed)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        exchange[Chosen.self] = nil
        guard ratio.value >= 1 || draws.next() < ratio.value else { return .pass }
        exchange[Chosen.self] = true
        guard let delay else { return verdict(exchange) }
        return .wait { _, exchange in
            try await exchange.sleep(for: delay)
            return verdict(exchange)
        }
    }

    private func verdict(_ exchange: Exchange) -> Verdict {
        if abort {
            exchange.note("reset", asDecision: true)
            exchange.breakOff()
            return .abort(with: HttpResponse(.badGateway))
        }
        if let status { return .abort(with: .problem(status, "a fault that was asked for")) }
        return .pass
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let truncate else { return .pass }
        let isChosen = exchange[Chosen.self] == true
        if isChosen { exchange.note("truncated behind \(truncate)", asDecision: true) }
        exchange.cutResponse(after: isChosen ? truncate.bytes : nil)
        return .pass
    }

    /// Whether the fault happens to the exchange.
    private enum Chosen: ExchangeKey { typealias Value = Bool }

    /// Numbers from 0 (inclusive) to 1 (exclusive), one for each request of all loops.
    final class Draws: Sendable {
        private let count: Atomic<UInt64>
        private let start: UInt64

        init(seed: Int?) {
            start = seed.map { UInt64(bitPattern: Int64($0)) } ?? ReplaceableRandom.number()
            count = Atomic(0)
        }

        /// The next number.
        func next() -> Double {
            let place = count.wrappingAdd(1, ordering: .relaxed).newValue
            return Double(SplitMix64.spread(start &+ place &* SplitMix64.step) &>> 11) / Double(1 << 53)
        }
    }
}

extension Fault: FilteredWare {}

extension Fault: AnsweringWare {}

extension Fault: ConfigurableWare {
    public static let name: WareName = "fault"
    public static let about = WareAbout(
        "Makes exchanges fail on purpose: with a status, a reset, a truncated response, or a delay.",
        source: "Envoy, mitmproxy",
        example: #"""
            - fault: { status: 503, ratio: 0.1, seed: 7 }
              filter: "~m POST & ~u /orders"
            - fault: { delay: 2s, truncate: 10KiB }
              filter: "~d cdn.example.com"
            """#,
        details: #"""
            With `status`, nothing goes upstream. With `abort`, the client's connection is reset (over HTTP/2, its
            stream) and it gets no response. With `truncate`, the response begins as usual and is broken off behind that
            much content. `delay` comes first, and may stand alone.

            `ratio` is the share of the requests that this happens to. With `seed`, the same requests are chosen in
            every run, counted in the order in which they come. A request that is sent again, such as by `retry`, is
            drawn again.

            `filter` stands beside `if`, and is an expression in the language of captures. It is decided on the request.
            """#,
        otherNames: ["faultInjection", "chaos", "errorInjection", "delay"])

    public init(options: inout OptionsReader) {
        var status: HttpStatus?
        var abort = false
        var truncate: ByteCount?
        var delay: Duration?
        var ratio: Ratio = 1.0
        var seed: Int?
        options.read(
            "status", into: &status, in: HttpStatus.errors, doc: "status of the response; nothing goes upstream")
        options.read("abort", into: &abort, doc: "resets the client's connection in place of a response")
        options.read(
            "truncate", into: &truncate, in: .bytes(0) ... .gibibytes(1024),
            doc: "content of the response that passes before it is broken off")
        options.read(
            "delay", into: &delay, in: .milliseconds(1) ... .seconds(3600), doc: "delay before anything else happens")
        options.read("ratio", into: &ratio, in: 0.0...1.0, doc: "share of the requests that this happens to")
        options.read("seed", into: &seed, doc: "chooses the same requests in every run")
        options.require(anyOf: ["status", "abort", "truncate", "delay"], "does nothing")
        options.useless("status", "truncate", with: "abort", abort, is: true)
        if seed != nil, ratio.value >= 1 { options.warn(at: "seed", "has no effect, because every request is chosen") }
        self.init(status: status, abort: abort, truncate: truncate, delay: delay, ratio: ratio, seed: seed)
    }
}
