/// One ware in a chain: the instance, and what the configuration says about it.
public struct ChainEntry: Sendable {
    /// The ware.
    public let ware: any Ware
    /// How logs, records and errors call it: its label, else its name.
    public let label: String
    /// When it runs; `nil` is always.
    public let condition: Condition?
    /// Decides beside the condition; `nil` is always.
    public let gate: (any EntryGate)?
    /// Its place in the joined chain.
    public let order: WareOrder
    /// Where it was written.
    public let location: SourceLocation
    /// Its options as they were written, secrets marked: for people to look at.
    public let options: ConfigNode

    public init(
        _ ware: any Ware, label: String? = nil, condition: Condition? = nil, gate: (any EntryGate)? = nil,
        order: WareOrder? = nil, location: SourceLocation = .code, options: ConfigNode = [:]
    ) {
        self.ware = ware
        self.label = label ?? "\(type(of: ware))"
        self.condition = condition
        self.gate = gate
        self.order = order ?? ware.order
        self.location = location
        self.options = options
    }
}

/// A chain as it runs: joined, sorted, and taken apart into flat arrays once, when the configuration is loaded.
public final class WareChain: Sendable {
    /// A ware on the request's way, and its response half if it has one.
    struct RequestStep: Sendable {
        let ware: MiddlewareCall
        let responseHalf: PostwareCall?
        /// From the lowest to the highest status that the response half is asked about.
        let asked: ClosedRange<Int>?
        let condition: Condition?
        let gate: (any EntryGate)?
        let label: String
        /// Content of the request that must be there before the ware is asked.
        let whole: Int?
        /// Content of the response that must be there before the response half is asked.
        let halfWhole: Int?
        /// The beginning of the request's content is waited for before the ware is asked.
        let needsBeginning: Bool
        /// The same ware, if it edits content.
        let editor: (any ContentEditor)?
        let failsOpen: Bool
        let mayReplay: Bool
        /// Neither a condition nor a gate nor a need for content nor a replay: it is only asked.
        let isPlain: Bool
        /// This ware, or one before it, may bind requests to their authority.
        let watchesAuthority: Bool
        /// Something is to be done when a request has passed the ware.
        let isMarked: Bool
    }

    /// A ware on the response's way.
    struct ResponseStep: Sendable {
        let ware: PostwareCall
        /// From the lowest to the highest status that it is asked about.
        let asked: ClosedRange<Int>?
        let condition: Condition?
        let gate: (any EntryGate)?
        let label: String
        let whole: Int?
        /// Content of the response that must be there before the ware is asked, if there is no more of it.
        let ifWhole: Int?
        /// The same ware, if it edits content.
        let editor: (any ContentEditor)?
        let failsOpen: Bool
        /// Neither a condition nor a gate: it is asked about every response with its statuses.
        let isUnconditional: Bool
    }

    /// A ware that is told of ends.
    struct Observer: Sendable {
        let ware: any ExchangeObserver
        let condition: Condition?
        let isPostware: Bool
    }

    let middlewares: FixedList<RequestStep>
    let postwares: FixedList<ResponseStep>
    /// The request's content is kept up to so many bytes, so that it can be sent again.
    let kept: Int
    let hasReplays: Bool
    /// A ware or a gate reads messages as people may see them.
    let showsMessages: Bool
    let hasResponseHalves: Bool
    /// A response half, or a postware, is asked about responses with some status.
    var seesAnyResponse: Bool { hasResponseHalves || !postwares.isEmpty }
    /// From the lowest to the highest status that any of them is asked about.
    let asked: ClosedRange<Int>?
    /// A response half, or a postware, is asked about responses with that status.
    @inline(__always)
    func seesResponses(_ status: HttpStatus) -> Bool { asked?.contains(status.code) ?? false }
    /// The wares that decorate every response, with their places.
    let decorators: [(place: Int, ware: any ResponseDecorator, condition: Condition?)]
    let hasDecorators: Bool
    /// The wares that are told when an exchange ends.
    let observers: [Observer]
    /// A ware asks for what each ware did.
    let observesWares: Bool
    /// What the wares are called, for records.
    let labels: ChainLabels

    /// The entries in the order that they run.
    public let entries: (middlewares: [ChainEntry], postwares: [ChainEntry])

    /// Sorts the entries by their order, stably. Throws the label of one that stands on the wrong side: a postware among
    /// the middlewares, or a middleware – a two-sided one, too – among the postwares.
    public init(middlewares: [ChainEntry], postwares: [ChainEntry]) throws(WrongSide) {
        let before = middlewares.stablySorted()
        let after = postwares.stablySorted()
        let requestWares = try before.map { entry throws(WrongSide) in
            guard let ware = entry.ware as? any Middleware else {
                throw WrongSide(label: entry.label, isPostware: true)
            }
            return ware
        }
        let responseWares = try after.map { entry throws(WrongSide) in
            guard let ware = entry.ware as? any Postware,
                !(entry.ware is any Middleware) || entry.ware is any EitherSided
            else {
                throw WrongSide(label: entry.label, isPostware: false)
            }
            return ware
        }
        let binder = requestWares.firstIndex { $0.bindsAuthority } ?? requestWares.count
        let requestSteps = zip(before, requestWares).enumerated().map { index, step in
            let (entry, ware) = step
            let half = ware is any EitherSided ? nil : ware as? any Postware
            let needsBeginning = ware.contentNeed == .beginning || ware.contentNeed.ifWholeLimit != nil
            return RequestStep(
                ware: MiddlewareCall(ware), responseHalf: half.map(PostwareCall.init),
                asked: half == nil ? nil : ware.responseStatuses.bounds, condition: entry.condition, gate: entry.gate,
                label: entry.label, whole: ware.contentNeed.wholeLimit,
                halfWhole: half == nil ? nil : ware.responseContentNeed.wholeLimit, needsBeginning: needsBeginning,
                editor: ware as? any ContentEditor, failsOpen: ware.failsOpen,
                mayReplay: ware.mayReplay,
                isPlain: entry.condition == nil && entry.gate == nil && ware.contentNeed.wholeLimit == nil
                    && !needsBeginning && !ware.mayReplay && !(ware is any ContentEditor),
                watchesAuthority: index >= binder, isMarked: ware.mayReplay || index >= binder)
        }
        let responseSteps = zip(after, responseWares).map { entry, ware in
            ResponseStep(
                ware: PostwareCall(ware), asked: ware.responseStatuses.bounds, condition: entry.condition,
                gate: entry.gate, label: entry.label, whole: ware.contentNeed.wholeLimit,
                ifWhole: ware.contentNeed.ifWholeLimit, editor: ware as? any ContentEditor, failsOpen: ware.failsOpen,
                isUnconditional: entry.condition == nil && entry.gate == nil)
        }
        entries = (before, after)
        self.middlewares = FixedList(requestSteps)
        self.postwares = FixedList(responseSteps)
        let keptForGates = after.contains { $0.gate?.needsRequestContent == true } ? WareChain.keptForGates : 0
        kept = requestWares.reduce(keptForGates) { max($0, $1.contentNeed.keptLimit) }
        showsMessages = (before + after).contains { $0.gate != nil || $0.ware is any MessageShower }
        hasReplays = requestSteps.contains { $0.mayReplay }
        hasResponseHalves = requestSteps.contains { $0.responseHalf != nil }
        asked =
            StatusSet(
                requestSteps.compactMap { $0.asked } + responseSteps.compactMap { $0.asked }
            ).bounds
        decorators = before.enumerated().compactMap { place, entry in
            // A gate lets requests by that were seen.
            guard entry.gate == nil else { return nil }
            return (entry.ware as? any ResponseDecorator).map { (place, $0, entry.condition) }
        }
        hasDecorators = !decorators.isEmpty
        observers =
            before.compactMap { entry in
                (entry.ware as? any ExchangeObserver).map {
                    Observer(ware: $0, condition: entry.condition, isPostware: false)
                }
            }
            + after.compactMap { entry in
                (entry.ware as? any ExchangeObserver).map {
                    Observer(ware: $0, condition: entry.condition, isPostware: true)
                }
            }
        observesWares = (before + after).contains { ($0.ware as? any WareObserver)?.observesWares == true }
        labels = ChainLabels(middlewares: before.map(\.label), postwares: after.map(\.label))
    }

    /// How much of a request's content gates of postwares may read.
    private static let keptForGates = 1 << 20

    /// A chain without wares.
    public static let empty = WareChain()

    private init() {
        middlewares = FixedList([])
        postwares = FixedList([])
        kept = 0
        hasReplays = false
        showsMessages = false
        hasResponseHalves = false
        asked = nil
        decorators = []
        hasDecorators = false
        observers = []
        observesWares = false
        labels = ChainLabels(middlewares: [], postwares: [])
        entries = ([], [])
    }

    deinit {
        middlewares.free { step in
            step.ware.free()
            step.responseHalf?.free()
        }
        postwares.free { $0.ware.free() }
    }

    /// An entry stands among those of the other direction.
    public struct WrongSide: Error, Equatable, CustomStringConvertible {
        public let label: String
        /// It is a postware among the middlewares.
        public let isPostware: Bool

        public var description: String {
            isPostware
                ? "\(label) is a postware; list it among the postwares"
                : "\(label) is a middleware; list it among the middlewares"
        }
    }
}

extension ContentNeed {
    var wholeLimit: Int? {
        if case .whole(let limit) = self { limit } else { nil }
    }

    var ifWholeLimit: Int? {
        if case .ifWhole(let limit) = self { limit } else { nil }
    }

    /// 0 where none is kept.
    var keptLimit: Int {
        if case .kept(let limit) = self { limit } else { 0 }
    }
}

extension [ChainEntry] {
    /// Sorted by order; equal ones stay as they were.
    func stablySorted() -> [ChainEntry] {
        enumerated().sorted { ($0.element.order, $0.offset) < ($1.element.order, $1.offset) }.map(\.element)
    }
}
