import HttpWare

/// How much a certificate authority may take, send and ask for.
struct AcmeLimits: Sendable {
    /// For one call.
    var call = Duration.seconds(20)
    /// For everything that one certificate takes.
    var order = Duration.seconds(300)
    /// How many calls one certificate takes.
    var calls = 200
    /// How often a request is sent whose nonce is refused. RFC 8555 §6.5.
    var nonces = 6
    /// The content of an answer.
    var content = ByteCount.kibibytes(256)
    /// The shortest and the longest pause before an order or an authorization is asked for again.
    var pause: ClosedRange<Duration> = .seconds(1) ... .seconds(30)
    /// The time that other gateways have to read a challenge from the shared store, before the authority is asked to
    /// try it.
    var notice = Duration.milliseconds(2500)
    /// How many certificates a chain may have.
    var chain = 10
}
