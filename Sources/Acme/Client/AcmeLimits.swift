import HttpWare

/// The limits for a certificate authority: time, calls and bytes.
struct AcmeLimits: Sendable {
    /// The time for one call.
    var call = Duration.seconds(20)
    /// The time for all calls of one certificate.
    var order = Duration.seconds(300)
    /// The most calls for one certificate.
    var calls = 200
    /// The most times that a request is sent while its nonce is refused. RFC 8555 §6.5.
    var nonces = 6
    /// The largest content of an answer.
    var content = ByteCount.kibibytes(256)
    /// The shortest and the longest pause before an order or an authorization is requested again.
    var pause: ClosedRange<Duration> = .seconds(1) ... .seconds(30)
    /// The time that other gateways have to read a challenge from the shared store, before the authority is asked to
    /// try it.
    var notice = Duration.milliseconds(2500)
    /// The most certificates in a chain.
    var chain = 10
}
