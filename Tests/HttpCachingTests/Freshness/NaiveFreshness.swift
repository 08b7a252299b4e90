/// RFC 9111 §4.2 word for word, over what a message says rather than over its text: slow, plain and without any thought for
/// numbers that are too large. The code under test does the same from bytes, within 64 bits.
struct NaiveFreshness {
    /// `delta-seconds`; `nil` inside the list for values that are not numbers.
    var sharedMaxAge: [Int128?] = []
    var maxAge: [Int128?] = []
    /// Seconds since 1970; `nil` inside the list for a value that is not a date.
    var expires: [Int128?] = []
    var isPublic = false
    var isShared = true
    /// The status is one of those "defined as heuristically cacheable". RFC 9110 §15.1.
    var isHeuristicallyCacheable = true
    var lastModified: Int128?
    /// `date_value`; `nil` without one.
    var date: Int128?
    /// `age_value`; `nil` without one, or where it is invalid.
    var age: Int128?
    /// In nanoseconds, as all below.
    var requestTime: Int128 = 0
    var responseTime: Int128 = 0

    private static let nanoseconds: Int128 = 1_000_000_000

    /// §1.2.2: "If a cache receives a delta-seconds value greater than the greatest integer it can represent, or if any of its
    /// subsequent calculations overflows, the cache MUST consider the value to be 2147483648 (2^31) or the greatest positive
    /// integer it can conveniently represent."
    private static func represented(_ seconds: Int128) -> Int128 { min(seconds, 2_147_483_648) }

    /// §5.2: "a Date value … the time the message was received if it is not present, as per Section 6.6.1 of HTTP": whole seconds.
    private var dateValue: Int128 { date ?? NaiveFreshness.floor(responseTime) }

    private static func floor(_ time: Int128) -> Int128 {
        time >= 0 ? time / nanoseconds : -((-time + nanoseconds - 1) / nanoseconds)
    }

    /// §4.2.1, in seconds; `nil` when there is no lifetime.
    var freshnessLifetime: Int128? {
        // "If the cache is shared and the s-maxage response directive is present, use its value, or"
        // "When there is more than one value present for a given directive …, either the first occurrence should be used or the
        // response should be considered stale." "Caches are encouraged to consider responses that have invalid freshness
        // information … to be stale."
        if isShared, let first = sharedMaxAge.first { return NaiveFreshness.represented(first ?? 0) }
        // "If the max-age response directive is present, use its value, or"
        if let first = maxAge.first { return NaiveFreshness.represented(first ?? 0) }
        // "If the Expires response header field is present, use its value minus the value of the Date response header field …, or"
        // §5.3: "A cache recipient MUST interpret invalid date formats, especially the value "0", as representing a time in the
        // past (i.e., "already expired")."
        if let first = expires.first {
            guard let first else { return 0 }
            return NaiveFreshness.represented(max(0, first - dateValue))
        }
        // §4.2.2: "If the response has a Last-Modified header field, caches are encouraged to use a heuristic expiration value that
        // is no more than some fraction of the interval since that time." Here a tenth, and at most a day.
        guard isHeuristicallyCacheable || isPublic, let lastModified,
            lastModified * NaiveFreshness.nanoseconds < date.map({ $0 * NaiveFreshness.nanoseconds }) ?? responseTime
        else { return nil }
        return min((dateValue - lastModified) / 10, 86_400)
    }

    /// §4.2.3, in nanoseconds.
    func currentAge(at now: Int128) -> Int128 {
        let ageValue = NaiveFreshness.represented(age ?? 0) * NaiveFreshness.nanoseconds
        // "apparent_age = max(0, response_time - date_value);"
        let apparentAge = max(0, responseTime - (date.map { $0 * NaiveFreshness.nanoseconds } ?? responseTime))
        // "response_delay = response_time - request_time;" "corrected_age_value = age_value + response_delay;"
        let responseDelay = responseTime - requestTime
        let correctedAgeValue = ageValue + responseDelay
        // "corrected_initial_age = max(apparent_age, corrected_age_value);"
        let correctedInitialAge = max(apparentAge, correctedAgeValue)
        // "resident_time = now - response_time;" "current_age = corrected_initial_age + resident_time;"
        return correctedInitialAge + (now - responseTime)
    }

    /// §4.2: "response_is_fresh = (freshness_lifetime > current_age)".
    func isFresh(at now: Int128) -> Bool {
        (freshnessLifetime ?? 0) * NaiveFreshness.nanoseconds > currentAge(at: now)
    }
}
