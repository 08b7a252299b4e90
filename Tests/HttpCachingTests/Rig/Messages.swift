import HttpCaching
import HttpWare

/// A header section from lines such as `Cache-Control: max-age=1`.
func fields(_ lines: [String]) -> HttpFields {
    var fields = HttpFields()
    for line in lines {
        guard let colon = line.firstIndex(of: ":"), let name = FieldName(String(line[..<colon])) else {
            preconditionFailure("not a field line: \(line)")
        }
        do {
            try fields.append(name, trimmed(line[line.index(after: colon)...]))
        } catch {
            preconditionFailure("not a field value: \(line)")
        }
    }
    return fields
}

/// Without white space at either end, as a decoder leaves it. RFC 9112 §5.1.
private func trimmed(_ value: Substring) -> String {
    var value = value
    while let first = value.first, first == " " || first == "\t" { value = value.dropFirst() }
    while let last = value.last, last == " " || last == "\t" { value = value.dropLast() }
    return String(value)
}

/// 2026-11-21T12:00:00Z, the time at which the tests' responses are received.
let noon = WallTime(seconds: 1_795_262_400)

/// So many seconds after noon.
func after(_ seconds: Int64) -> WallTime { WallTime(seconds: noon.seconds + seconds) }

/// What a response of those lines, received at noon at once, was decided to be.
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

    /// What becomes of a request so many seconds after noon.
    func reuse(_ request: [String] = [], after seconds: Int64, mode: CacheMode = .shared) -> Reuse {
        Reuse.decide(
            age: times.currentAge(at: HttpCachingTests.after(seconds)),
            rules: ReuseRules(directives, lifetime, mode: mode), request: RequestDirectives(fields(request)),
            policy: CachePolicy())
    }
}
