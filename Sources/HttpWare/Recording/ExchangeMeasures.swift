/// What is counted of one kind of exchanges where the `metrics` ware asks for it: by method and class of status, and by ware.
///
/// Each number's place is made once, by the first exchange that needs it; to count the others allocates nothing.
public struct ExchangeMeasures: Sendable {
    /// Exchanges of one method and class.
    public struct Kind: Sendable {
        /// `_OTHER` for all that is not registered: a client may make any up.
        public let method: String
        /// The first digit of the status; 0 where the client had no response.
        public let digit: Int
        public let durations: DurationCounts
    }

    /// What a ware did, in both directions.
    public struct OfWare: Sendable {
        public let label: String
        public internal(set) var durations = DurationCounts.wares
        fileprivate var decisions = [Int](repeating: 0, count: WareStep.Decision.allCases.count)

        /// How often it decided so.
        public subscript(decision: WareStep.Decision) -> Int { decisions[decision.place] }
    }

    private static let digits = 10
    /// By method, and then by class.
    private var times = [DurationCounts?](repeating: nil, count: HttpMethod.knownCount * digits)
    /// By label: entries of one label are counted together.
    public private(set) var wares: [OfWare] = []

    /// Those that there were.
    public var kinds: [Kind] {
        times.enumerated().compactMap { place, durations in
            durations.map {
                Kind(
                    method: HttpMethod.knownName(at: place / ExchangeMeasures.digits) ?? "_OTHER",
                    digit: place % ExchangeMeasures.digits, durations: $0)
            }
        }
    }

    /// Where the wares of a chain are counted: its middlewares, and behind them its postwares.
    mutating func places(of labels: ChainLabels) -> [Int] {
        (labels.middlewares + labels.postwares).map { label in
            if let known = wares.firstIndex(where: { $0.label == label }) { return known }
            wares.append(OfWare(label: label))
            return wares.count - 1
        }
    }

    mutating func count(_ exchange: Exchange, _ duration: Int64) {
        let digit = min((exchange.finalStatus?.code ?? 0) / 100, ExchangeMeasures.digits - 1)
        let place = exchange.heldRequest.receivedMethod.knownPlace * ExchangeMeasures.digits + digit
        if times[place] == nil { times[place] = .exchanges }
        times[place]?.add(duration)
    }

    /// Counts what each ware did. `places` are those of the exchange's chain, which has so many middlewares.
    mutating func countWares(_ trail: borrowing WareTrail, _ places: [Int], middlewares: Int) {
        for step in trail.steps {
            let place = step.side == .postware ? middlewares + Int(step.place) : Int(step.place)
            guard place < places.count else { continue }
            wares[places[place]].decisions[step.decision.place] &+= 1
            if step.decision != .skipped { wares[places[place]].durations.add(step.duration) }
        }
    }

    /// Adds what another loop counted.
    mutating func add(_ other: ExchangeMeasures) {
        for place in times.indices {
            guard let more = other.times[place] else { continue }
            if times[place] == nil { times[place] = .exchanges }
            times[place]?.add(more)
        }
        let places = places(of: ChainLabels(middlewares: other.wares.map(\.label), postwares: []))
        for (place, ware) in zip(places, other.wares) {
            wares[place].durations.add(ware.durations)
            for index in ware.decisions.indices { wares[place].decisions[index] &+= ware.decisions[index] }
        }
    }
}

extension WareStep.Decision {
    /// Its place among all.
    @inline(__always)
    fileprivate var place: Int {
        switch self {
        case .passed: 0
        case .aborted: 1
        case .replaced: 2
        case .replayed: 3
        case .skipped: 4
        case .failed: 5
        case .gaveUp: 6
        }
    }
}
