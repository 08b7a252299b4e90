import HttpCaching
import HttpWare
import StoreRig

/// The decision about a response of those lines, received at noon at once.
struct Judged {
    let lifetime: FreshnessLifetime
    let directives: ResponseDirectives
    let times: MessageTimes
    let storability: Storability

    init(
        _ lines: [String], status: Int = 200, method: HttpMethod = .get, request: [String] = [],
        isAuthorized: Bool = false, policy: CachePolicy = CachePolicy()
    ) {
        let all = fields(lines)
        let status = HttpStatus(status) ?? .ok
        let (directives, isTargeted) = policy.directives(of: all)
        times = MessageTimes(all, requested: noon, received: noon)
        lifetime = FreshnessLifetime(
            status: status, fields: all, directives: directives, isTargeted: isTargeted, times: times, policy: policy)
        self.directives = directives
        storability = Storability.decide(
            method: method, request: RequestDirectives(fields(request)), isAuthorized: isAuthorized, status: status,
            fields: all, directives: directives, lifetime: lifetime, policy: policy)
    }

    /// The decision about a request at this number of seconds after noon.
    func reuse(_ request: [String] = [], after seconds: Int64, mode: CacheMode = .shared) -> Reuse {
        Reuse.decide(
            age: times.currentAge(at: StoreRig.after(seconds)),
            rules: ReuseRules(directives, lifetime, mode: mode), request: RequestDirectives(fields(request)),
            policy: CachePolicy())
    }
}
