public import HttpWare

/// How long a stored response stays fresh, counted from its generation at the origin server. RFC 9111 §4.2.1.
public struct FreshnessLifetime: Sendable, Equatable {
    /// The origin of the lifetime.
    public enum Source: Sendable, Equatable {
        case sharedMaxAge, maxAge, expires
        /// The response states no lifetime, so the configured one applies.
        case configured
        /// The lifetime is computed from `Last-Modified`. §4.2.2.
        case heuristic
        /// There is no lifetime: the response is stale at once.
        case none
    }

    /// Seconds, 0 … `DeltaSeconds.most`.
    public var seconds: Int64
    public var source: Source

    /// Whether the response states the lifetime.
    public var isExplicit: Bool { source == .sharedMaxAge || source == .maxAge || source == .expires }

    /// The lifetime of a response with these fields and times.
    ///
    /// For a shared cache `s-maxage` wins over `max-age`, and both win over `Expires`. A targeted field disables
    /// `Expires`. An invalid `Expires` is in the past. §5.3. `mayGuess` says whether a heuristic is allowed if the
    /// response states no lifetime.
    public init(
        status: HttpStatus, fields: HttpFields, directives: ResponseDirectives, isTargeted: Bool = false,
        times: MessageTimes, policy: CachePolicy, mayGuess: Bool = true
    ) {
        if policy.mode == .shared, let seconds = directives.sharedMaxAge {
            self.init(seconds: seconds, source: .sharedMaxAge)
        } else if let seconds = directives.maxAge {
            self.init(seconds: seconds, source: .maxAge)
        } else if !isTargeted, let expires = fields.values(of: .expires).first {
            let time = HttpDate.time(expires, now: times.received)
            let seconds = time.map { $0.seconds - times.date.seconds } ?? 0
            self.init(seconds: min(max(0, seconds), DeltaSeconds.most), source: .expires)
        } else if let seconds = policy.defaultLifetime, status.isHeuristicallyCacheable || directives.isPublic {
            self.init(seconds: seconds, source: .configured)
        } else if mayGuess, status.isHeuristicallyCacheable || directives.isPublic,
            let modified = fields.time(of: .lastModified, now: times.received),
            modified < times.date
        {
            let since = Double(times.date.seconds - modified.seconds)
            let seconds = min(Int64(min(since * policy.heuristicRatio, 1e15)), policy.heuristicLimit)
            self.init(seconds: max(0, seconds), source: .heuristic)
        } else {
            self.init(seconds: 0, source: .none)
        }
    }

    public init(seconds: Int64, source: Source) {
        self.seconds = seconds
        self.source = source
    }
}

extension HttpStatus {
    /// Whether a response with this status may be stored with a heuristic lifetime, without any directive. RFC 9110
    /// §15.1.
    public var isHeuristicallyCacheable: Bool {
        switch code {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Whether this cache supports the caching rules of the status, so that `must-understand` is met. RFC 9111
    /// §5.2.2.3.
    public var isUnderstoodByCaches: Bool {
        switch code {
        case 200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }
}
