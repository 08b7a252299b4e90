@testable import HttpCaching
@testable import HttpWare

/// Fields that a client or an origin server may send to a cache: `Cache-Control` and all that decides with it.
extension Fuzzing {
    /// Decides about a response and a request, each the lines of one half of the input, at many ages. Whatever they say, times
    /// and lifetimes stay within their bounds, and no decision contradicts another.
    public static func cacheFields(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let halves = wire.split(separator: 0x00, maxSplits: 1, omittingEmptySubsequences: false)
        let response = lines(halves[0])
        let request = lines(halves.count > 1 ? halves[1] : [])
        var policy = CachePolicy()
        if choice & 1 != 0 { policy.mode = .private }
        if choice & 2 != 0 { policy.staleWhileRevalidate = 30 }
        if choice & 4 != 0 { policy.targeted = [] }
        let statuses: [HttpStatus] = [.ok, .partialContent, .notFound, .found]
        judge(response, request, statuses[choice >> 3 & 3], policy)
        vary(response, request)
        ranges(response, request)
        dates(response)
    }

    /// Lines `name: value`, invalid ones left out.
    private static func lines(_ text: ArraySlice<UInt8>) -> HttpFields {
        var fields = HttpFields()
        for line in text.split(separator: 0x0a) {
            let parts = line.split(separator: 0x3a, maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let name = FieldName(String(decoding: parts[0], as: UTF8.self)) else { continue }
            try? fields.append(name, String(decoding: parts[1].drop { $0 == 0x20 }, as: UTF8.self))
        }
        return fields
    }

    private static func judge(
        _ response: HttpFields, _ request: HttpFields, _ status: HttpStatus, _ policy: CachePolicy
    ) {
        let now = WallTime(seconds: 1_795_262_400)
        let (directives, isTargeted) = policy.directives(of: response)
        let times = MessageTimes(response, requested: now, received: now)
        let lifetime = FreshnessLifetime(
            status: status, fields: response, directives: directives, isTargeted: isTargeted, times: times,
            policy: policy)
        require((0...DeltaSeconds.most).contains(lifetime.seconds), "a lifetime of \(lifetime.seconds)")
        for seconds in [directives.maxAge, directives.sharedMaxAge, directives.staleIfError] {
            require((0...DeltaSeconds.most).contains(seconds ?? 0), "seconds out of bounds")
        }
        require((0...DeltaSeconds.most).contains(times.age) && times.initialAge >= 0, "an age of \(times.age)")
        let wishes = RequestDirectives(request)
        let storability = Storability.decide(
            method: .get, request: wishes, isAuthorized: request.contains(.authorization), status: status,
            fields: response, directives: directives, lifetime: lifetime, policy: policy)
        if storability == .may {
            require(
                !wishes.noStore && (!directives.noStore || directives.mustUnderstand), "stored in spite of no-store")
        }
        // The last directive counts, with any text before it on lines of its own.
        let closed = ResponseDirectives(response.values(of: .cacheControl) + ["no-store"])
        require(closed.noStore, "a line is lost behind others")
        let rules = ReuseRules(directives, lifetime, mode: policy.mode)
        var last: Int64 = -1
        for seconds in [0, 1, 60, 3600, 1 << 31, 1 << 40, Int64.max / 2] {
            let age = times.currentAge(at: WallTime(seconds: now.seconds &+ seconds))
            require(age >= 0 && age >= last, "an age that goes back: \(age)")
            last = age
            let reuse = Reuse.decide(age: age, rules: rules, request: wishes, policy: policy)
            if reuse == .fresh { require(lifetime.seconds * 1_000_000_000 > age, "fresh beyond its lifetime") }
            let isStale = reuse == .stale || reuse == .staleWhileRevalidating
            if isStale { require(!rules.forbidsStale && !rules.needsValidation, "stale in spite of the response") }
            if reuse != .validate(.request), wishes.noCache {
                require(rules.needsValidation, "used in spite of no-cache")
            }
            keep(
                Reuse.mayUseOnError(
                    age: age, rules: rules, request: wishes, policy: policy, isDisconnected: true, offlineLimit: 60))
        }
    }

    /// A response matches the request that it was made for.
    private static func vary(_ response: HttpFields, _ request: HttpFields) {
        guard let key = VaryKey(response, request: { request.values(of: $0) }) else { return }
        require(key.names.count <= VaryKey.mostNames, "too many names")
        require(key.matches { request.values(of: $0) }, "a request does not match itself")
    }

    private static func ranges(_ response: HttpFields, _ request: HttpFields) {
        for length in [0, 1, 10, 1 << 40, Int.max] {
            switch ByteRange(request.values(of: .range), length: length) {
            case .part(let range): require(!range.isEmpty && range.upperBound <= length, "a part beyond the end")
            case .parts(let ranges):
                require(ranges.count <= ByteRange.mostParts, "too many parts")
                for range in ranges { require(!range.isEmpty && range.upperBound <= length, "a part beyond the end") }
                let sorted = ranges.sorted { $0.lowerBound < $1.lowerBound }
                let isApart = zip(sorted, sorted.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
                require(ranges.count > 1 && isApart, "parts that overlap")
            case .unsatisfiable, nil: break
            }
        }
        if let range = response[.contentRange].flatMap({ ContentRange(reading: $0) }) {
            require(ContentRange(reading: range.text) == range, "a range that reads as another")
        }
        let now = WallTime(seconds: 1_795_262_400)
        let own = Validators(response, now: now)
        require(own.arePicked(by: Validators()), "a 304 without validators is about another")
        keep(Preconditions.decide(request, stored: own, received: now) == .send)
        keep(Preconditions.allowsRange(request, stored: own, now: now))
        keep(Preconditions.areMet(request, current: own, now: now))
        let updated = StoredFields.updated(response, by: request)
        require(updated.values(of: .contentLength) == response.values(of: .contentLength), "a length that changed")
    }

    /// Text that is read as a date is written so that it reads as the same.
    private static func dates(_ response: HttpFields) {
        let now = WallTime(seconds: 1_795_262_400)
        for (_, value) in response {
            guard let time = HttpDate.time(value, now: now) else { continue }
            require(HttpDate.time(HttpDate.text(time), now: now) == time, "a date that reads as another: \(value)")
        }
    }

    /// Keeps the compiler from leaving out what makes this value.
    @inline(never)
    private static func keep(_ value: Bool) {}
}
