import Credentials
import HttpWare

/// What is remembered about the certificate of one name, over restarts too: failures, and when to renew. Pure: it is told the time.
struct RenewalState: Sendable, Equatable {
    /// How many orders failed, one after the other.
    var failures = 0
    /// No order begins before this.
    var notBefore: WallTime?
    /// Why the last order failed.
    var problem: String?
    /// The certificate that `info` is about.
    var renewalId: String?
    /// When the authority suggests to renew it.
    var info: RenewalInfo?
    /// When to ask for renewal information again.
    var askAgain: WallTime?

    private static let shortestPause = Duration.seconds(60)
    private static let longestPause = Duration.seconds(86_400)
    private static let longestAsked = Duration.seconds(7 * 86_400)
    private static let usualAsk = Duration.seconds(6 * 3600)

    // MARK: Failures

    /// An order failed: the next one waits, each time five times as long, for a minute first and for a day at most; for a certificate that
    /// is short-lived at most for a twelfth of its lifetime. `jitter` is from 0 to 1.
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

    // MARK: When

    /// When the next order is to begin.
    func due(for certificate: CertificateFacts?, at now: WallTime) -> WallTime {
        // A clock that was set back does not make anybody wait for longer than the longest pause.
        let earliest = notBefore.map { $0 - now > RenewalState.longestAsked + RenewalState.longestPause ? now : $0 }
        guard let certificate else { return earliest ?? now }
        let planned = planned(for: certificate)
        return earliest.map { max($0, planned) } ?? planned
    }

    /// In the suggested window, if there is one, else after two thirds of the lifetime. What an authority suggests is not followed
    /// further than to a short while after the certificate began, and to five sixths of its lifetime.
    private func planned(for certificate: CertificateFacts) -> WallTime {
        let lifetime = certificate.end - certificate.start
        guard let info, let id = certificate.renewalId, id == renewalId else {
            return certificate.start + lifetime * (2.0 / 3.0)
        }
        let earliest = certificate.start + max(.seconds(3600), lifetime / 48)
        let latest = certificate.start + lifetime * (5.0 / 6.0)
        return min(max(info.moment(RenewalState.fraction(of: id)), earliest), latest)
    }

    /// A number from 0 to 1 that is another one for each certificate, and stays the same for one.
    static func fraction(of id: String) -> Double {
        let number = Array(id.utf8).sha256.prefix(6).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Double(number) / Double(UInt64(1) << 48)
    }

    // MARK: Renewal information

    /// When to ask for renewal information; `nil` for a certificate that has none.
    func askDue(for certificate: CertificateFacts?, at now: WallTime) -> WallTime? {
        guard let id = certificate?.renewalId else { return nil }
        guard id == renewalId, let askAgain, askAgain - now < RenewalState.longestPause * 2 else { return now }
        return askAgain
    }

    /// The authority was asked. Without an answer what it said before stays. RFC 9773 §4.3: at least a minute and at most a day later
    /// it is asked again.
    mutating func asked(about id: String, _ answer: RenewalInfo?, again: Duration?, at now: WallTime) {
        if renewalId != id { info = nil }
        renewalId = id
        if let answer { info = answer }
        let pause = min(max(again ?? RenewalState.usualAsk, RenewalState.shortestPause), RenewalState.longestPause)
        askAgain = now + pause
    }

    // MARK: JSON

    /// For the file.
    var json: Json {
        func time(_ time: WallTime?) -> Json? { time.map { .number(Int($0.seconds)) } }
        return .object(given: [
            ("failures", .number(failures)), ("notBefore", time(notBefore)), ("problem", problem.map { .text($0) }),
            ("renewalId", renewalId.map { .text($0) }), ("start", time(info?.start)), ("end", time(info?.end)),
            ("askAgain", time(askAgain)),
        ])
    }

    init() {}

    /// Of a file; what is missing or makes no sense is left out.
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
