import HttpWare

/// A ware as an import makes it: its name, its options, and the requests on which it acts.
struct WareDraft: Hashable, Sendable {
    /// The name of the ware, such as `rewrite`.
    var name: String
    /// The options as the file writes them; a text stands for itself and is never interpolated.
    var options: ConfigNode
    /// The requests on which it acts, as they are at its place.
    var test: RequestTest = .always
    /// The maker of the responses on which it acts, such as `gateway`; `nil` for all. Only for wares of responses.
    var responder: String?
    /// The place from which it comes.
    var place: SourceLocation

    /// A ware whose options are these entries; a `nil` value is left out.
    init(
        _ name: String, _ entries: KeyValuePairs<String, ConfigNode?> = [:], if test: RequestTest = .always,
        at place: SourceLocation
    ) {
        self.name = name
        options = ConfigNode.map(entries)
        self.test = test
        self.place = place
    }

    /// A ware with these options.
    init(_ name: String, options: ConfigNode, if test: RequestTest = .always, at place: SourceLocation) {
        self.name = name
        self.options = options
        self.test = test
        self.place = place
    }

    static func == (left: WareDraft, right: WareDraft) -> Bool {
        left.name == right.name && left.options == right.options && left.test == right.test
            && left.responder == right.responder
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(options)
        hasher.combine(test)
    }
}

extension ConfigNode {
    /// A map of these entries without those that are `nil`.
    static func map(_ entries: KeyValuePairs<String, ConfigNode?>) -> ConfigNode {
        ConfigNode(
            .map(entries.compactMap { key, value in value.map { Entry(key: key, location: .code, value: $0) } }))
    }

    /// A map of texts.
    static func map(_ entries: [(String, String)]) -> ConfigNode {
        ConfigNode(.map(entries.map { Entry(key: $0.0, location: .code, value: .text($0.1)) }))
    }

    /// A list of texts.
    static func list(_ texts: [String]) -> ConfigNode { ConfigNode(.list(texts.map { .text($0) })) }

    /// A text.
    static func text(_ text: String) -> ConfigNode { ConfigNode(.scalar(text, isQuoted: true)) }

    /// A number, a boolean, a duration or another text that needs no quotes.
    static func word(_ text: String) -> ConfigNode { ConfigNode(.scalar(text, isQuoted: false)) }
}

/// Where the requests of a route go.
enum TargetDraft: Hashable, Sendable {
    /// To a service.
    case service(String)
    /// To one of several services, by weight; with a cookie that keeps a client at its share.
    case split([Share], cookie: String?)
    /// Nowhere: the last of the middlewares answers.
    case answered
    /// Nowhere: the answer is 503 with this text, because the source restricts access in a way that is not understood, or asks
    /// for what is not there.
    case refused(String)

    /// A service and its weight.
    struct Share: Hashable, Sendable {
        var service: String
        var weight: Int
    }
}

/// A route as an import makes it.
struct RouteDraft: Sendable {
    /// The name; `nil` if the source has none.
    var name: String?
    /// The listeners of the route; empty for all.
    var listeners: [String] = []
    /// The requests that take the route.
    var test: RequestTest
    /// The wares for requests, in order.
    var middlewares: [WareDraft] = []
    /// The wares for responses, in order.
    var postwares: [WareDraft] = []
    /// Where the requests go.
    var target: TargetDraft
    /// The place from which it comes.
    var place: SourceLocation
}

/// A service as an import makes it.
struct ServiceDraft: Sendable {
    /// An endpoint.
    struct Endpoint: Hashable, Sendable {
        /// The URL, without a path unless all endpoints share it.
        var url: String
        var weight: Int?
        var isBackup = false
    }

    /// The name that the service gets if it is free.
    var name: String
    /// The endpoints; never empty.
    var endpoints: [Endpoint]
    /// All other keys, as the file writes them.
    var options: [(key: String, value: ConfigNode)] = []
    /// The place from which it comes.
    var place: SourceLocation

    /// Whether the other one would behave the same.
    func isEqual(to other: ServiceDraft) -> Bool {
        endpoints == other.endpoints && options.count == other.options.count
            && zip(options, other.options).allSatisfy { $0.key == $1.key && $0.value == $1.value }
    }
}

/// A listener as an import makes it.
struct ListenerDraft: Sendable {
    /// The name.
    var name: String
    /// The address, such as `0.0.0.0:80`.
    var bind: String
    /// Whether clients use TLS.
    var isTls = false
    /// Pairs of files with certificates and keys.
    var certificates: [(cert: String, key: String)] = []
    /// The names whose certificates an authority gives.
    var acmeDomains: [String] = []
    /// The address that the authority may write to.
    var acmeEmail: String?
    /// The directory of the authority; `nil` for Let's Encrypt.
    var acmeDirectory: String?
    /// How control of the names is proved; `nil` for the default.
    var acmeChallenge: String?
    /// All other keys, as the file writes them; `tls` holds those of TLS.
    var options: [(key: String, value: ConfigNode)] = []
    /// Further keys of `tls`.
    var tlsOptions: [(key: String, value: ConfigNode)] = []
    /// The place from which it comes.
    var place: SourceLocation
}
