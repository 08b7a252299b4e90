import HttpWare

/// The failures and the renewal time of one name, kept across restarts. It reads no clock: the caller passes the time.
struct RenewalState: Sendable, Equatable {
    /// The number of consecutive failed orders.
    var failures = 0
    /// The earliest time of the next order.
    var notBefore: WallTime?
    /// Why the last order failed.
    var problem: String?
    /// The renewal identifier of the certificate that `info` describes.
    var renewalId: String?
    /// The renewal window that the authority suggests.
    var info: RenewalInfo?
    /// When to ask for renewal information again.
    var askAgain: WallTime?

    private static let shortestPause = Duration.seconds(60)
    private static let longestPause = Duration.seconds(86_400)
    private static let longestAsked = Duration.seconds(7 * 86_400)
    private static let usualAsk = Duration.seconds(6 * 3600)

    // MARK: Failures

    /// Records a failed order. The next order waits for a minute at first, five times as long after each failure, and at most for
    /// a day. For a short-lived certificate the maximum is a twelfth of its lifetime, but at least an hour. `jitter` is from 0 to
    /// 1.
    mutating func failed(_ failure: AcmeFailure, at now: WallTime, lifetime: Duration?, jitter: Double) {
        failures = min(failures, 1000) + 1
        problem = failure.reason
        var pause = RenewalState.shortestPause
        for _ in 1..<min(failures, 8) { pause *= 5 }
        let most =
            lifetime.map { min(RenewalState.longestPause, max(.seconds(3600), $0 / 12)) } ?? RenewalState.longestPause
        pause = min(pause, most)
        pause += pause * 0.1 * min(max(jitter, 0), 1)
        if let asked = failure.retryAfter { pause = max(pause, min(asked, RenewalState.longestAsked)) }
        notBefore = now + pause
    }

    // MARK: The next order

    /// When the next order begins.
    func due(for certificate: CertificateFacts?, at now: WallTime) -> WallTime {
        // After a clock was set back, no wait exceeds the longest pause.
        let earliest = notBefore.map { $0 - now > RenewalState.longestAsked + RenewalState.longestPause ? now : $0 }
        guard let certificate else { return earliest ?? now }
        let planned = planned(for: certificate)
        return earliest.map { max($0, planned) } ?? planned
    }

    /// A moment in the suggested window, if there is one, or else after two thirds of the lifetime. The authority's suggestion is
    /// limited: at the earliest shortly after the certificate's start, at the latest after five sixths of its lifetime.
    private func planned(for certificate: CertificateFacts) -> WallTime {
        let lifetime = certificate.end - certificate.start
        guard let info, let id = certificate.renewalId, id == renewalId else {
            return certificate.start + lifetime * (2.0 / 3.0)
        }
        let earliest = certificate.start + max(.seconds(3600), lifetime / 48)
        let latest = certificate.start + lifetime * (5.0 / 6.0)
        return min(max(info.moment(RenewalState.fraction(of: id)), earliest), latest)
    }

    /// A number from 0 to 1 that differs between certificates, and is always the same for one certificate.
    static func fraction(of id: String) -> Double {
        let number = Array(id.utf8).sha256.prefix(6).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Double(number) / Double(UInt64(1) << 48)
    }

    // MARK: Renewal information

    /// When to request renewal information; `nil` for a certificate without a renewal identifier.
    func askDue(for certificate: CertificateFacts?, at now: WallTime) -> WallTime? {
        guard let id = certificate?.renewalId else { return nil }
        guard id == renewalId, let askAgain, askAgain - now < RenewalState.longestPause * 2 else { return now }
        return askAgain
    }

    /// Records a request for renewal information. Without an answer, the earlier information stays. It is requested again after a
    /// minute at the earliest and a day at the latest: RFC 9773 §4.3.
    mutating func asked(about id: String, _ answer: RenewalInfo?, again: Duration?, at now: WallTime) {
        if renewalId != id { info = nil }
        renewalId = id
        if let answer { info = answer }
        let pause = min(max(again ?? RenewalState.usualAsk, RenewalState.shortestPause), RenewalState.longestPause)
        askAgain = now + pause
    }

    // MARK: JSON

    /// The content of the state's file.
    var json: Json {
        func time(_ time: WallTime?) -> Json? { time.map { .number(Int($0.seconds)) } }
        return .object(given: [
            ("failures", .number(failures)), ("notBefore", time(notBefore)), ("problem", problem.map { .text($0) }),
            ("renewalId", renewalId.map { .text($0) }), ("start", time(info?.start)), ("end", time(info?.end)),
            ("askAgain", time(askAgain)),
        ])
    }

    init() {}

    /// Reads the content of a file; missing and invalid values are left out.
    init(_ json: JsonValue) {
        func time(_ name: String) -> WallTime? {
            json[name]?.double.flatMap { (0...1e11).contains($0) ? WallTime(seconds: Int64($0)) : nil }
        }
        failures = json["failures"]?.double.flatMap { (0...1000).contains($0) ? Int($0) : nil } ?? 0
        notBefore = time("notBefore")
        problem = json["problem"]?.string
        renewalId = json["renewalId"]?.string
        if let start = time("start"), let end = time("end") { info = RenewalInfo(start: start, end: end) }
        askAgain = time("askAgain")
    }
}
