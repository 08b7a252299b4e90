/// The roles of wares: protocols that say what a ware does besides handling messages. The gateway and the checks of a
/// configuration recognise a ware by its roles, not by its name.
///
/// Four roles need types of other modules and are declared there: `CredentialUser` (Credentials), `FilteredWare` (Capturing),
/// `CachingWare` and `OfflineSwitch` (Wares).

// MARK: Sides

/// A ware that acts on requests where it stands among the middlewares, and on responses where it stands among the postwares. It is not
/// two-sided: an entry acts on one of them.
public protocol EitherSided: Middleware, Postware {}

/// A ware that shows messages to people or files: the fields that the gateway put tokens into must be known to it
/// (`Exchange.injectedFields`).
public protocol MessageShower: Ware {}

/// A ware that decorates every response: also one to a request that ended at a ware before it, or failed there.
public protocol ResponseDecorator: Middleware {
    /// Called if the request did not reach the ware, before the response goes to the wares that it reached. On the exchange's loop.
    func decorate(_ response: inout HttpResponse, to request: HttpRequest, in exchange: Exchange)
}

// MARK: Access

/// A ware that refuses requests for the sake of security: whether it runs must not depend on how a server reads a path.
public protocol AccessRule: Ware {
    /// Whether all wares of this type exist to refuse clients: then a route that drops one causes a warning.
    static var isAccessControl: Bool { get }
    /// Whether this ware refuses requests, as configured.
    var restrictsAccess: Bool { get }
}

extension AccessRule {
    public static var isAccessControl: Bool { true }
    public var restrictsAccess: Bool { true }
}

/// A ware that limits, counts or checks requests to protect the origin server. As with access, whether it runs must not depend on how
/// a server reads a path: otherwise a client gets past it with another form of the path.
public protocol Safeguard: Ware {}

/// A ware that can restrict access to known clients. A forward listener that the network can reach needs one.
public protocol AccessGuard: AccessRule {
    /// Whether it admits only known clients, as configured.
    var admitsOnlyKnown: Bool { get }
}

/// A ware that authenticates clients (`Exchange.authenticated`): requests after it have a principal.
public protocol AuthenticatingWare: Ware {
    /// Whether the principal has claims.
    var givesClaims: Bool { get }
    /// Whether clients send it passwords, which anybody can read where there is no TLS.
    var takesPasswords: Bool { get }
}

extension AuthenticatingWare {
    public var takesPasswords: Bool { false }
}

/// A ware that occupies names, such as a cookie or a path: two entries of its type that handle the same request must not share one.
public protocol OccupyingWare: Ware {
    /// The names, each with the option that sets it.
    var occupied: [(option: String, value: String)] { get }
}

// MARK: Requests

/// A ware that answers requests itself, in place of the origin server, without refusing them. A temporary rule acts before it does.
public protocol AnsweringWare: Middleware {
    /// Whether its answers are stored responses of the origin server, so that a request may also go on without the ware.
    var storesResponses: Bool { get }
}

extension AnsweringWare {
    public var storesResponses: Bool { false }
}

/// A ware that groups requests by keys.
public protocol KeyedWare: Ware {
    /// The parts of its keys.
    var keys: [RequestKey] { get }
}

/// A ware that removes or sets fields of requests, as configured.
public protocol FieldEditingWare: Ware {
    /// The fields that it removes from every request.
    var takenFields: [FieldName] { get }
    /// The fields that it can set.
    var givenFields: [FieldName] { get }
}

/// A ware that holds requests, for `/v1/holds/LABEL/open` and `close` of the admin listener.
public protocol HoldGate: Ware {
    /// Whether the configuration lets operators open and close it.
    var isManual: Bool { get }
    /// Whether requests are held at the moment.
    var isClosed: Bool { get }
    /// The number of requests that are held.
    var heldCount: Int { get }
    /// Holds requests from now on, or releases the held ones and holds no more. Safe to call from any thread.
    func setClosed(_ isClosed: Bool)
}

// MARK: Content

/// A ware that edits the content of some messages as a whole.
///
/// Such content is collected before the ware is asked, however slowly it comes. Content over the limit streams on, and the ware is
/// asked without it: `content.bytes` is `nil` then.
public protocol ContentEditor: Ware {
    /// The most bytes of the request's content that are collected; `nil` if the ware does not edit it.
    func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int?
    /// The same for a response: for postwares and response halves.
    func contentLimit(of response: HttpResponse, in exchange: Exchange) -> Int?
}

extension ContentEditor {
    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? { nil }
    public func contentLimit(of response: HttpResponse, in exchange: Exchange) -> Int? { nil }
}

// MARK: Observing

/// A ware that is told when the exchange has ended: only then its bytes, its duration and its end are known.
///
/// Cheaper than `Exchange.onEnd`, because no closure is made. Any ware of a chain can be one.
public protocol ExchangeObserver: Ware {
    /// Called once, on the exchange's loop, after the exchange ended: completed, cut off, or left by the client. Called for each
    /// entry of the joined chain whose condition holds. A client that left has no response: then only the part of the
    /// condition about the request counts, and `exchange.finalStatus` is `nil`.
    ///
    /// `exchange.request` holds the request as it went upstream, and in its fields the received ones.
    func ended(_ exchange: Exchange)
}

/// A ware that reads what each ware did from the exchange's record. This is recorded only if a chain has such a ware, or if
/// another observer needs it.
public protocol WareObserver: Ware {
    /// Whether it reads these actions, as configured. Read once, when the chain is made.
    var observesWares: Bool { get }
}

extension WareObserver {
    public var observesWares: Bool { true }
}

/// A ware that counts its work, for metrics.
public protocol CountingWare: Ware {
    /// The object that counts, the same for all copies of the ware.
    var counter: any WareCounter { get }
}

/// Counts for a ware. Safe to use from any thread.
public protocol WareCounter: AnyObject, Sendable {
    /// The current numbers, always the same metrics in the same order.
    var numbers: [WareNumber] { get }
}

/// A number for metrics.
public struct WareNumber: Sendable, Equatable {
    /// The metric's name: `httpware_rate_limited_total`.
    public let name: String
    /// Whether the number can also fall.
    public let isGauge: Bool
    /// A sentence that explains the metric.
    public let help: String
    /// The current value.
    public let value: Int
    /// Distinguishes the numbers of one metric; `nil` if there is only one number.
    public let label: Label?

    /// A label beside the ware's own: `result="sent"`.
    public struct Label: Sendable, Equatable {
        public let name: String
        public let value: String

        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Makes a number; a counter, unless it is a gauge.
    public init(_ name: String, isGauge: Bool = false, _ help: String, _ value: Int, label: Label? = nil) {
        self.name = name
        self.isGauge = isGauge
        self.help = help
        self.value = value
        self.label = label
    }
}

// MARK: The beginning and the end of the gateway

/// A ware with work that begins when a gateway uses it: reading its options alone starts nothing.
public protocol StartingWare: Ware {
    /// The object that does the work, the same for all copies of the ware; `nil` if there is never any.
    var starter: (any WareStarter)? { get }
}

/// Begins the work of a ware. Safe to use from any thread.
public protocol WareStarter: AnyObject, Sendable {
    /// Begins the work without waiting for it. Called whenever a configuration with the ware comes into use; calls after the first have
    /// no effect.
    func start()
}

/// A ware that still has work to do when the gateway stops.
public protocol FinishingWare: Ware {
    /// The object that does the work, the same for all copies of the ware; `nil` if there is never any.
    var finisher: (any WareFinisher)? { get }
}

/// Does the remaining work of a ware. Safe to use from any thread.
public protocol WareFinisher: AnyObject, Sendable {
    /// Returns when the work is done. Called once, after the last exchange, on a loop that keeps running.
    func finish() async
}

// MARK: The place in a chain

/// The place where a ware belongs in a chain. `check` warns if the wares of a chain are in another order.
///
/// The first list is that of middlewares, from the listener's side to the origin's. The second is that of postwares, from the
/// origin's side to the listener's.
public enum ChainPlace: Int, Sendable, Comparable {
    case requestIdentifier, tracing, accessRules, contentLimits, crossOrigin, authentication, rateLimits
    case concurrencyLimits, idempotency, offline, caching, coalescing, tokenRefresh, tokenInjection, signing, retry
    case circuitBreaker, timeLimits

    case unauthorized, errorPages, contentEditing, compression, fieldEditing, timing, metrics, accessLog

    public static func < (left: ChainPlace, right: ChainPlace) -> Bool { left.rawValue < right.rawValue }
}

/// A consequence of listing a ware before one of another place, reported by `check` as a warning.
public struct OrderRisk: Sendable {
    /// The places of the wares that must not come later in the chain.
    public let places: [ChainPlace]
    /// The consequence and the remedy; follows "stands before NAME, at PLACE: ".
    public let consequence: String
    /// Whether there is no risk if an `AccessGuard` stands before both wares.
    public let isAvertedByGuard: Bool

    /// The consequence of standing before a ware of one of these places.
    public static func before(
        _ places: ChainPlace..., avertedByGuard: Bool = false, consequence: String
    ) -> OrderRisk {
        OrderRisk(places: places, consequence: consequence, isAvertedByGuard: avertedByGuard)
    }
}

extension [OrderRisk] {
    /// The risks of a ware that can give one client's response to another client.
    public static let ofSharedResponses: [OrderRisk] = [
        .before(
            .authentication,
            consequence: "responses for authenticated clients would go to others; put authentication first"),
        .before(
            .accessRules, consequence: "its responses would go to clients that the rule refuses; put the rule first"),
    ]
}
