import Credentials
import DiskCaching
import HttpCaching
import HttpWare
import HttpWareRedis

/// Wares that do nothing, for configurations that name them.
enum ScriptedWares {
    static let all: [any ConfigurableWare.Type] = [
        BodyLimit.self, RequestHeaders.self, IpRule.self, Mock.self, Retry.self, AccessLog.self, TimeLog.self,
        BasicAuth.self, Jwt.self, HttpCache.self, Coalesce.self, TokenRefresh.self, TokenInject.self, Accumulate.self,
        Sign.self,
        CircuitBreaker.self, Rewrite.self,
        Timeout.self, Compress.self, RewriteBody.self, ResponseHeaders.self, HostRule.self, RateLimit.self,
    ]
    /// The kinds of stores that a gateway has.
    static let stores: [any StoreKind.Type] = [DiskKind.self, RedisKind.self]

    final class BodyLimit: Middleware, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "bodyLimit"
        static let chainPlace: ChainPlace? = .contentLimits
        static let about = WareAbout("Limits content.")
        let max: ByteCount
        let status: HttpStatus?

        init(options: inout OptionsReader) {
            var max = ByteCount.mebibytes(10)
            var status: HttpStatus?
            options.read("max", into: &max, in: .bytes(1) ... .gibibytes(1))
            options.read("status", into: &status)
            self.max = max
            self.status = status
        }

        var description: String { "bodyLimit(\(max)\(status.map { ", \($0.code)" } ?? ""))" }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    struct RequestHeaders: Middleware, FieldEditingWare, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "requestHeaders"
        static let about = WareAbout("Edits fields.", otherNames: ["headers"])
        var set: OptionMap<FieldName, Template> = [:]
        var remove: [FieldName] = []
        var takenFields: [FieldName] { remove }
        var givenFields: [FieldName] { self.set.map(\.key) }

        init(options: inout OptionsReader) {
            options.read("set", into: &set)
            options.read("remove", into: &remove)
        }

        var description: String {
            let edits = set.map { "\($0.key)=\($0.value.source)" } + remove.map { "-\($0)" }
            return "requestHeaders(\(edits.joined(separator: " ")))"
        }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    struct RateLimit: Safeguard, Middleware, KeyedWare, ConfigurableWare {
        static let name: WareName = "rateLimit"
        static let chainPlace: ChainPlace? = .rateLimits
        static let about = WareAbout("Limits rates.")
        var key = RequestKey.ip
        var keys: [RequestKey] { key.parts }

        init(options: inout OptionsReader) { options.readKey("key", into: &key) }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    struct IpRule: AccessGuard, Middleware, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "ipRule"
        static let chainPlace: ChainPlace? = .accessRules
        static let about = WareAbout("Lets addresses in.")
        var allow: [IPNetwork] = []
        var admitsOnlyKnown: Bool { !allow.isEmpty }

        init(options: inout OptionsReader) { options.read("allow", into: &allow) }

        var description: String { "ipRule(\(allow.map(\.description).joined(separator: " ")))" }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    struct Mock: Middleware, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "mock"
        static let about = WareAbout("Answers by itself.")
        var status = HttpStatus.ok
        var json = ""
        var body: Secret?
        var holdsState: Bool { true }

        init(options: inout OptionsReader) {
            options.read("status", into: &status)
            options.readSecret("body", into: &body)
            json = options.readNode("json", type: "JSON")?.json ?? ""
        }

        var description: String { "mock(\(status.code)\(json)\(body.map { " " + $0.revealed } ?? ""))" }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    struct Retry: Middleware, Postware, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "retry"
        static let chainPlace: ChainPlace? = .retry
        static let about = WareAbout("Tries again.")
        var statuses: StatusSet = [502, 503, 504]
        var backoff = DurationRange(.milliseconds(100) ... .seconds(2))
        var budget: Ratio = 0.2
        var methods: [HttpMethod] = [.get]

        init(options: inout OptionsReader) {
            var listed = methods.map { Located($0, at: options.location) }
            options.read("methods", into: &listed)
            methods = listed.map(\.value)
            for method in listed where !method.value.isIdempotent {
                options.warn(
                    at: "methods", in: method.location,
                    "\"\(method.value)\" is not idempotent: a second attempt may do the work twice (RFC 9110 §9.2.2)")
            }
            options.read("retryOn", into: &statuses)
            options.read("backoff", into: &backoff)
            options.read("budget", into: &budget)
        }

        var description: String { "retry(\(statuses), \(backoff.optionText), \(budget))" }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
    }

    struct AccessLog: Postware, ConfigurableWare, CustomStringConvertible {
        enum Format: String, OptionWord { case json, combined }

        static let name: WareName = "accessLog"
        static let chainPlace: ChainPlace? = .accessLog
        static let about = WareAbout("Writes a line.")
        var format = Format.json
        var output = LogOutput.stdout

        init(options: inout OptionsReader) {
            options.read("format", into: &format)
            options.read("output", into: &output)
        }

        var description: String { "accessLog(\(format.rawValue) \(output.optionText))" }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
    }

    struct TimeLog: Postware, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "timeLog"
        static let chainPlace: ChainPlace? = .timing
        static let about = WareAbout("Logs times.")

        init(options: inout OptionsReader) {}

        var description: String { "timeLog" }

        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
    }

    /// A middleware with a name only, for rules about the order of wares.
    protocol NamedMiddleware: Middleware, ConfigurableWare, CustomStringConvertible {
        init()
    }

    /// A postware that has a name.
    protocol NamedPostware: Postware, ConfigurableWare, CustomStringConvertible {
        init()
    }

    struct Jwt: NamedMiddleware, AuthenticatingWare, AccessGuard {
        static let name: WareName = "jwt"
        static let chainPlace: ChainPlace? = .authentication
        var givesClaims: Bool { true }
        var admitsOnlyKnown: Bool { true }
    }
    struct BasicAuth: NamedMiddleware, AuthenticatingWare, AccessGuard {
        static let name: WareName = "basicAuth"
        static let chainPlace: ChainPlace? = .authentication
        var givesClaims: Bool { false }
        var takesPasswords: Bool { true }
        var admitsOnlyKnown: Bool { true }
    }

    struct HttpCache: Middleware, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "httpCache"
        static let chainPlace: ChainPlace? = .caching
        static let orderRisks =
            [OrderRisk].ofSharedResponses + [
                .before(.tokenInjection, avertedByGuard: true, consequence: "what is fetched is stored for all clients")
            ]
        static let about = WareAbout("Stores responses.", otherNames: ["proxyCache"])
        var store: NamedStore?
        var holdsState: Bool { false }

        init(options: inout OptionsReader) { options.readStore("store", into: &store) }

        var description: String { "httpCache" }

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }
    struct Coalesce: NamedMiddleware {
        static let name: WareName = "coalesce"
        static let chainPlace: ChainPlace? = .coalescing
        static let orderRisks = [OrderRisk].ofSharedResponses
        static let about = WareAbout("Shares responses.", otherNames: ["proxyCache"])
    }
    /// Does nothing with a credential.
    protocol NamedUser: Middleware, ConfigurableWare, CredentialUser, CustomStringConvertible {
        init()
        var credential: Credential? { get set }
    }

    struct TokenRefresh: NamedUser {
        static let name: WareName = "tokenRefresh"
        static let chainPlace: ChainPlace? = .tokenRefresh
        var credential: Credential?
        var credentialUse: CredentialUse { .refreshes }
    }
    struct TokenInject: NamedUser {
        static let name: WareName = "tokenInject"
        static let chainPlace: ChainPlace? = .tokenInjection
        static let orderRisks: [OrderRisk] = [
            .before(.tokenRefresh, consequence: "a repeated request would carry the old token; put tokenRefresh first")
        ]
        var credential: Credential?
        var credentialUse: CredentialUse { .injects }
        var bindsAuthority: Bool { true }
    }
    struct Accumulate: NamedUser {
        static let name: WareName = "accumulate"
        var credential: Credential?
        var credentialUse: CredentialUse { .holds }
    }
    struct Sign: NamedMiddleware {
        static let name: WareName = "sign"
        static let chainPlace: ChainPlace? = .signing
        static let orderRisks: [OrderRisk] = [
            .before(
                .tokenRefresh, .tokenInjection, consequence: "it would sign another request; put sign after it")
        ]
    }

    struct Rewrite: Middleware, ConfigurableWare, CustomStringConvertible {
        static let name: WareName = "rewrite"
        static let about = WareAbout("Changes the target.")
        var host: String?
        var changesAuthority: Bool { host != nil }

        init(options: inout OptionsReader) {
            options.read("host", into: &host)
            var method: String?
            options.read("method", into: &method)
        }

        var description: String { "rewrite" }
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }
    struct CircuitBreaker: NamedMiddleware {
        static let name: WareName = "circuitBreaker"
        static let chainPlace: ChainPlace? = .circuitBreaker
        static let orderRisks: [OrderRisk] = [
            .before(.retry, consequence: "it would count exchanges, not attempts; put retry first")
        ]
    }
    struct Timeout: NamedMiddleware {
        static let name: WareName = "timeout"
        static let chainPlace: ChainPlace? = .timeLimits
    }
    struct HostRule: NamedMiddleware, AccessRule {
        static let name: WareName = "hostRule"
        static let chainPlace: ChainPlace? = .accessRules
    }
    struct Compress: NamedPostware {
        static let name: WareName = "compress"
        static let about = WareAbout("Compresses.", otherNames: ["gzip"])
        static let chainPlace: ChainPlace? = .compression
        static let orderRisks: [OrderRisk] = [
            .before(.contentEditing, consequence: "the later ware would get compressed content; put compress after it")
        ]
    }
    struct RewriteBody: NamedPostware {
        static let name: WareName = "rewriteBody"
        static let chainPlace: ChainPlace? = .contentEditing
    }
    struct ResponseHeaders: NamedPostware {
        static let name: WareName = "responseHeaders"
        static let chainPlace: ChainPlace? = .fieldEditing
    }
}

extension ScriptedWares.NamedMiddleware {
    static var about: WareAbout { WareAbout("Stands at a place.") }
    init(options: inout OptionsReader) { self.init() }
    var description: String { Self.name.text }
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
}

extension ScriptedWares.NamedUser {
    static var about: WareAbout { WareAbout("Uses a credential.") }
    init(options: inout OptionsReader) {
        self.init()
        var credential: Credential?
        options.read("credential", into: &credential, of: "credentials")
        self.credential = credential
    }
    var description: String { Self.name.text }
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
}

extension ScriptedWares.NamedPostware {
    static var about: WareAbout { WareAbout("Stands at a place.") }
    init(options: inout OptionsReader) { self.init() }
    var description: String { Self.name.text }
    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
}
