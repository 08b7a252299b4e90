/// The numbers of one kind of exchanges for the `metrics` ware: by method and class of status, and by ware.
///
/// The first exchange that needs a number makes its place; counting the others allocates nothing.
public struct ExchangeMeasures: Sendable {
    /// The exchanges with one method and class of status.
    public struct Kind: Sendable {
        /// `_OTHER` for all unregistered methods, because a client may invent any.
        public let method: String
        /// The first digit of the status; 0 for clients that got no response.
        public let digit: Int
        public let durations: DurationCounts
    }

    /// The actions of a ware, in both directions.
    public struct OfWare: Sendable {
        public let label: String
        public internal(set) var durations = DurationCounts.wares
        fileprivate var decisions = [Int](repeating: 0, count: WareStep.Decision.allCases.count)

        /// The number of these decisions.
        public subscript(decision: WareStep.Decision) -> Int { decisions[decision.place] }
    }

    private static let digits = 10
    /// The durations by method, and then by class.
    private var times = [DurationCounts?](repeating: nil, count: HttpMethod.knownCount * digits)
    /// The wares by label: entries with the same label are counted together.
    public private(set) var wares: [OfWare] = []

    /// The kinds of exchanges that occurred.
    public var kinds: [Kind] {
        times.enumerated().compactMap { place, durations in
            durations.map {
                Kind(
                    method: HttpMethod.knownName(at: place / ExchangeMeasures.digits) ?? "_OTHER",
                    digit: place % ExchangeMeasures.digits, durations: $0)
            }
        }
    }

    /// The indices at which the wares of a chain are counted: its middlewares, then its postwares.
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

    /// Counts the actions of each ware. `places` are those of the exchange's chain, which has `middlewares` middlewares.
    mutating func countWares(_ trail: borrowing WareTrail, _ places: [Int], middlewares: Int) {
        for step in trail.steps {
            let place = step.side == .postware ? middlewares + Int(step.place) : Int(step.place)
            guard place < places.count else { continue }
            wares[places[place]].decisions[step.decision.place] &+= 1
            if step.decision != .skipped { wares[places[place]].durations.add(step.duration) }
        }
    }

    /// Adds the counts of another loop.
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
    /// The decision's index.
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
