import HttpCaching
import HttpWare

/// The field `Retry-After`, read and written. RFC 9110 §10.2.3.
package enum RetryAfter {
    /// How long a response asks to wait; `nil` if it does not ask, or the value is invalid.
    static func pause(_ response: borrowing HttpResponse, at now: WallTime) -> Duration? {
        guard let text = response.fields[.retryAfter] else { return nil }
        if let seconds = DeltaSeconds.read(text) { return .seconds(seconds) }
        guard let time = HttpDate.time(text, now: now) else { return nil }
        return max(.zero, time - now)
    }

    /// A pause in whole seconds, as written in the field: rounded up, at least 1.
    package static func seconds(_ pause: Duration) -> Int { max(1, (pause.milliseconds + 999) / 1000) }
}
