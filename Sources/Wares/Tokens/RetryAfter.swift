import HttpWare

/// `Retry-After`, in seconds. RFC 9110 §10.2.3.
enum RetryAfter {
    static func line(_ seconds: Int) -> FieldLine {
        do {
            return try FieldLine(.retryAfter, String(seconds))
        } catch {
            // Never: digits are a field value.
            preconditionFailure("not a field value: \(seconds)")
        }
    }
}
