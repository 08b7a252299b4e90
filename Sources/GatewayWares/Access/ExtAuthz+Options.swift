public import HttpWare
import Wares

extension ExtAuthz: ConfigurableWare {
    public static let name: WareName = "extAuthz"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Lets an external server decide about each request, such as Authelia, oauth2-proxy or another server for forward authentication.",
        source: "Traefik forwardAuth, nginx auth_request",
        example: #"""
            - extAuthz: { url: "http://127.0.0.1:9091/api/authz/forward-auth", copy: [Remote-User, Remote-Groups] }
            - extAuthz: { url: "http://127.0.0.1:4180/oauth2/auth", signIn: "/oauth2/start?rd={request.url}" }
            """#,
        details: #"""
            If the server answers with 2xx, the request passes. An answer with 3xx or 4xx goes to the client, with its fields and
            content. If the server does not answer in time, or with 5xx, the client gets `status`, unless `failOpen` is set.
            An answer with more than 128 KiB of content counts as no answer. At most 1,000 calls run at the same time. A server
            that listens on a Unix socket only cannot be asked.

            The server gets the fields in `headers`, `Accept` and `X-Requested-With`, and these facts about the request:
            `X-Forwarded-Method`, `-Proto`, `-Host`, `-Uri` and `-For`, and `X-Original-Method`, `-URI` and `-URL`. The URI is the
            one that goes upstream from this place of the chain. `X-Forwarded-For`, `-Proto` and `-Host` of the client are used only
            if the connection comes from one of the listener's `trustedProxies`.

            Fields in `copy` are taken from the answer and go upstream. The same fields of the client are always deleted, even
            if the answer has none. If one of them is `Remote-User`, `X-Auth-Request-User` or `X-Forwarded-User`, it names the
            principal of the request.

            Answers are remembered only with `cache`; `cache: {}` uses its defaults. An answer with `no-store`, `no-cache`
            or `Set-Cookie`, or with a `Vary` that names a field outside the key, is never remembered. 401 and 403 are remembered only if
            the answer states a lifetime. Besides the fields in `key`, method, target and the client's address tell requests
            apart. With `coalesce`, concurrent requests with the same key share one call, unless the answer has `Set-Cookie`.

            With `signIn`, a page load is redirected there in place of a 401. A page load is a request with
            `Sec-Fetch-Mode: navigate`, or without that field and with `text/html` in `Accept`. `{request.url}` is the URL to
            return to; values are percent-encoded.

            On a forward listener, `Proxy-Authorization` is sent as `Authorization`, and 401 becomes 407.
            """#,
        otherNames: [
            "auth", "authentication", "forwardAuth", "authRequest", "externalAuth", "extAuth", "oauth2Proxy",
            "authelia",
        ])

    public init(options: inout OptionsReader) {
        var url: HttpUrl?
        var method = HttpMethod.get
        var timeout = Duration.seconds(1)
        var coalesce = true
        var caching = ExtAuthzCaching()
        let usual = ExtAuthz(nil)
        var (headers, copy, copyToResponse) = (usual.headers, usual.copy, usual.copyToResponse)
        var (signIn, failOpen, status) = (usual.signIn, usual.failOpen, usual.status)
        var body = ByteCount.bytes(0)
        options.read("url", into: &url, doc: "URL of the server that decides")
        options.require("url")
        options.read("method", into: &method, doc: "method of the call")
        options.read(
            "headers", into: &headers,
            doc:
                "fields of the request that are sent to the server, besides Accept, X-Requested-With and the X-Forwarded fields"
        )
        options.read(
            "copy", into: &copy,
            doc: "fields of a 2xx answer that go upstream; the client's own fields with these names are always deleted")
        options.read(
            "body", into: &body, in: .bytes(0) ... .mebibytes(10),
            doc:
                "maximum content of a request, which is sent along; a request with more is refused with 413; 0B sends none"
        )
        options.read(
            "copyToResponse", into: &copyToResponse,
            doc: "fields of a 2xx answer that are added to the response for the client")
        options.read(
            "timeout", into: &timeout, in: .milliseconds(10) ... .seconds(60), doc: "maximum duration of one call")
        var isCached = false
        options.read("cache", doc: "remembers answers; without it, the server is asked about every request") {
            isCached = $0.isWritten
            $0.read(
                "ttl", into: &caching.ttl, in: .milliseconds(1) ... .seconds(86_400),
                doc:
                    "how long a 2xx answer is remembered if it states no lifetime in Cache-Control or Expires; a longer lifetime is cut to this"
            )
            $0.read(
                "maxEntries", into: &caching.maxEntries, in: 32...1_000_000,
                doc: "maximum number of remembered answers; together they use at most 32 MiB")
            $0.read("key", into: &caching.key, doc: "fields that tell requests apart, besides method and target")
        }
        options.read("coalesce", into: &coalesce, doc: "lets concurrent requests with the same key share one call")
        options.read(
            "signIn", into: &signIn,
            doc: "where a page load is redirected in place of a 401; begins with https://, http:// or /")
        options.read("failOpen", into: &failOpen, doc: "lets requests pass if the server gives no answer")
        options.read("status", into: &status, doc: "status for the client if the server gives no answer: 400 to 599")

        if method == .connect { options.fail(at: "method", "cannot be CONNECT; write GET or POST") }
        if !(400...599).contains(status.code) {
            options.fail(at: "status", "\(status) is not a refusal; write 400 to 599")
        }
        if let url, !url.isSafe { options.warn(at: "url", "credentials are sent in clear text; write https") }
        if let signIn, let problem = signIn.redirectProblem { options.fail(at: "signIn", problem) }
        for name in headers where Self.isOwn(name) {
            options.fail(at: "headers", "\(name) is written by the gateway itself; remove it")
        }
        for (key, names) in [("copy", copy), ("copyToResponse", copyToResponse)] {
            for name in names where name.isGatewayOwned || name == .host {
                options.fail(at: key, "\(name) cannot be copied; the gateway itself writes it")
            }
        }
        if isCached { Self.checkKey(caching.key, headers, &options) }

        let call = url.flatMap {
            try? ExtAuthzCall(method, $0.text, timeout: timeout, coalesce: coalesce, client: SideCaller())
        }
        self.init(call, caching: isCached ? caching : nil)
        self.headers = headers
        self.copy = copy
        self.copyToResponse = copyToResponse
        self.body = body.bytes
        self.signIn = signIn
        self.failOpen = failOpen
        self.status = status
    }

    /// Whether the gateway sets the field itself in its question.
    private static func isOwn(_ name: FieldName) -> Bool {
        let own: [FieldName] = [
            .host, .xForwardedFor, .xForwardedHost, .xForwardedProto, "X-Forwarded-Method", "X-Forwarded-Uri",
            "X-Original-Method", "X-Original-URI", "X-Original-URL",
        ]
        return name.isGatewayOwned || own.contains(name)
    }

    /// Warns about a key under which one client gets another's answer, or which clients can choose freely.
    private static func checkKey(_ key: [FieldName], _ headers: [FieldName], _ options: inout OptionsReader) {
        let usual = ExtAuthzCaching().key
        for name in key where !usual.contains(name) {
            options.warn(
                at: "cache",
                headers.contains(name)
                    ? "key has \(name): each value that a client sends is stored apart, so clients can displace the answers for others"
                    : "key has \(name), which is not sent to the server; add it to headers or remove it")
        }
        for name in headers where !key.contains(name) {
            options.warn(
                at: "cache",
                "\(name) is sent to the server and is not in key: an answer for one value is used for all others")
        }
    }
}
