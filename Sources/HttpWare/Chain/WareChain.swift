/// One ware in a chain: the instance, and its settings in the configuration.
public struct ChainEntry: Sendable {
    /// The ware.
    public let ware: any Ware
    /// The ware's name in logs, records and errors: its label, else the name of its type.
    public let label: String
    /// When the ware runs; `nil` means always.
    public let condition: Condition?
    /// An additional decision to the condition; `nil` means always.
    public let gate: (any EntryGate)?
    /// The ware's place in the joined chain.
    public let order: WareOrder
    /// The entry's place in the configuration.
    public let location: SourceLocation
    /// The options as written, with secrets marked: for display.
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

/// A chain in its final form: joined, sorted, and split into flat arrays once, when the configuration is loaded.
public final class WareChain: Sendable {
    /// A ware on the request's way, and its response half if it has one.
    struct RequestStep: Sendable {
        let ware: MiddlewareCall
        let responseHalf: PostwareCall?
        /// The range from the lowest to the highest status that the response half handles.
        let asked: ClosedRange<Int>?
        let condition: Condition?
        let gate: (any EntryGate)?
        let label: String
        /// The amount of request content that must have arrived before the ware runs.
        let whole: Int?
        /// The amount of response content that must have arrived before the response half runs.
        let halfWhole: Int?
        /// The ware runs only when the start of the request's content has arrived.
        let needsBeginning: Bool
        /// The ware as a content editor; `nil` if it edits no content.
        let editor: (any ContentEditor)?
        let failsOpen: Bool
        let mayReplay: Bool
        /// The ware has no condition, gate, need for content or replay, so it only has to be called.
        let isPlain: Bool
        /// This ware, or an earlier one, may bind requests to their authority.
        let watchesAuthority: Bool
        /// The driver has work to do when a request has passed the ware.
        let isMarked: Bool
    }

    /// A ware on the response's way.
    struct ResponseStep: Sendable {
        let ware: PostwareCall
        /// The range from the lowest to the highest status that the ware handles.
        let asked: ClosedRange<Int>?
        let condition: Condition?
        let gate: (any EntryGate)?
        let label: String
        let whole: Int?
        /// Response content up to this many bytes is collected before the ware runs; more streams on.
        let ifWhole: Int?
        /// The ware as a content editor; `nil` if it edits no content.
        let editor: (any ContentEditor)?
        let failsOpen: Bool
        /// The ware has no condition and no gate: it runs for every response with its statuses.
        let isUnconditional: Bool
    }

    /// A ware that handles the end of exchanges.
    struct Observer: Sendable {
        let ware: any ExchangeObserver
        let condition: Condition?
        let isPostware: Bool
    }

    let middlewares: FixedList<RequestStep>
    let postwares: FixedList<ResponseStep>
    /// The number of bytes of request content that are kept, so that it can be sent again.
    let kept: Int
    let hasReplays: Bool
    /// A ware or a gate shows messages to people.
    let showsMessages: Bool
    let hasResponseHalves: Bool
    /// Whether any response half or postware handles any status.
    var seesAnyResponse: Bool { hasResponseHalves || !postwares.isEmpty }
    /// The range from the lowest to the highest status that any of them handles.
    let asked: ClosedRange<Int>?
    /// Whether a response half or a postware may handle that status.
    @inline(__always)
    func seesResponses(_ status: HttpStatus) -> Bool { asked?.contains(status.code) ?? false }
    /// The wares that decorate every response, with their positions.
    let decorators: [(place: Int, ware: any ResponseDecorator, condition: Condition?)]
    let hasDecorators: Bool
    /// The wares that handle the end of an exchange.
    let observers: [Observer]
    /// A ware reads the other wares' actions.
    let observesWares: Bool
    /// The names of the wares, for records.
    let labels: ChainLabels

    /// The entries in running order.
    public let entries: (middlewares: [ChainEntry], postwares: [ChainEntry])

    /// Sorts the entries by their order, stably. Throws the label of an entry on the wrong side: a postware among
    /// the middlewares, or a middleware among the postwares, even if it is two-sided.
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
            // A gate can skip the ware for requests that it saw before.
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

    /// The number of bytes of a request's content that gates of postwares may read.
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

    /// An entry is in the list of the other direction.
    public struct WrongSide: Error, Equatable, CustomStringConvertible {
        public let label: String
        /// Whether it is a postware among the middlewares; otherwise the reverse.
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

    /// The limit of kept content; 0 if none is kept.
    var keptLimit: Int {
        if case .kept(let limit) = self { limit } else { 0 }
    }
}

extension [ChainEntry] {
    /// The entries sorted by order; equal ones keep their order.
    func stablySorted() -> [ChainEntry] {
        enumerated().sorted { ($0.element.order, $0.offset) < ($1.element.order, $1.offset) }.map(\.element)
    }
}
