/// The answers that a cache may give, written from RFC 9111 and not from the gateway's code.
///
/// It judges only what is certain: the gateway decides at some time between the sending of a request and its answer, and counts in whole seconds. So a
/// response counts as stale if it was so a second before the request was sent.
final class CacheOracle {
    /// A response of the origin server, or its 304 for an earlier one.
    private struct Generated {
        let step: Step
        let at: Int64
        let status: Int
    }

    private unowned let judge: Judge
    private var generated: [Int: [Generated]] = [:]
    /// The times at which an origin server failed for a key.
    private var failures: [Int: [Int64]] = [:]
    /// The unsafe requests that succeeded.
    private var unsafe: [(asked: Judge.Asked, replica: Int)] = []

    private static let second: Int64 = 1_000_000_000

    init(_ judge: Judge) { self.judge = judge }

    // MARK: The origin server

    /// The directives of the step's response.
    static func directives(_ step: Step) -> String {
        var list: [String] = []
        if step["age"] != 0 { list.append("max-age=\(step["age"] - 1)") }
        if step["shared"] != 0 { list.append("s-maxage=\(step["shared"] - 1)") }
        if step["revalidate"] != 0 { list.append("stale-while-revalidate=\(step["revalidate"])") }
        if step["error"] != 0 { list.append("stale-if-error=\(step["error"])") }
        for name in ["public", "private", "must", "nocache", "nostore"] where step[name] != 0 {
            list.append(
                ["must": "must-revalidate", "nocache": "no-cache", "nostore": "no-store"][name] ?? name)
        }
        return list.joined(separator: ", ")
    }

    /// The request's directives, by number.
    private static let wishes = [
        "", "no-cache", "no-store", "max-age=0", "only-if-cached", "max-stale=3", "min-fresh=2", "max-age=2",
    ]

    static func wish(_ step: Step) -> String { wishes[step["wish"] % wishes.count] }

    func noteGenerated(_ asked: Judge.Asked, status: Int) {
        let one = Generated(step: asked.step, at: judge.timeline.now, status: status)
        generated[asked.step.number, default: []].append(one)
        if status >= 500 { noteFailure(asked.step) }
    }

    func noteFailure(_ step: Step) { failures[step["key"], default: []].append(judge.timeline.now) }

    // MARK: The client

    func noteSuccess(_ asked: Judge.Asked, replica: Int) {
        if !["GET", "HEAD"].contains(asked.method) { unsafe.append((asked, replica)) }
    }

    /// Judges a whole response. `source` is the request for which the origin server made it, and `validation` the one whose 304 made it fresh again.
    func judgeResponse(_ asked: Judge.Asked, _ replica: Int, source: Int, validation: Int?) {
        guard let origin = generated[source]?.last(where: { $0.status != 304 }) else {
            return judge.fail("request \(asked.step.number) got a response that no origin server made: \(source)")
        }
        if source == asked.step.number { return }
        let reasons = refusals(asked, replica, origin, validation.flatMap { generated[$0]?.last { $0.status == 304 } })
        if let reason = reasons.first {
            judge.fail("request \(asked.step.number) got the response to request \(source), but \(reason)")
        }
    }

    private func refusals(
        _ asked: Judge.Asked, _ replica: Int, _ origin: Generated, _ validation: Generated?
    ) -> [String] {
        var reasons: [String] = []
        let step = asked.step
        func refuse(_ reason: String, if isSo: Bool) { if isSo { reasons.append(reason) } }
        let stored = origin.step
        // The fields of a 304 replace the stored ones: §3.2.
        let current = validation?.step ?? stored
        refuse("it is one for another URI (§4)", if: stored["key"] != step["key"])
        refuse("the method is unsafe (§4)", if: !["GET", "HEAD"].contains(asked.method))
        refuse("it was a response to HEAD (§4)", if: Judge.methods[stored["method"]] == "HEAD" && asked.method == "GET")
        refuse("Vary names a field that differs (§4.1)", if: stored["vary"] != 0 && stored["tenant"] != step["tenant"])
        refuse("it has no-store (§5.2.2.5)", if: stored["nostore"] != 0)
        refuse("it is private (§5.2.2.7)", if: stored["private"] != 0)
        refuse("its request had no-store (§5.2.1.5)", if: CacheOracle.wish(stored) == "no-store")
        refuse(
            "its request was authorized, and nothing allows to share it (§3.5)",
            if: stored["authorized"] != 0 && stored["public"] == 0 && stored["shared"] == 0 && stored["must"] == 0)
        // Made after the request was sent: the request waited for it.
        if origin.at >= asked.sentAt { return reasons }
        let newest = validation?.at ?? origin.at
        let isValidated = newest >= asked.sentAt
        let wish = CacheOracle.wish(step)
        refuse("it must be validated before each use (§5.2.2.4)", if: current["nocache"] != 0 && !isValidated)
        refuse("the request asks for a validation (§5.2.1.4)", if: wish == "no-cache" && !isValidated)
        let age = asked.sentAt - newest
        refuse(
            "the request wants none of this age (§5.2.1.1)",
            if: !isFailing(asked)
                && (wish == "max-age=0" && age > CacheOracle.second
                    || wish == "max-age=2" && age > 3 * CacheOracle.second)
        )
        refuse("it was invalidated (§4.4)", if: wasInvalidated(asked, replica, origin, newest))
        let lifetime = Int64(max(0, (current["shared"] != 0 ? current["shared"] : current["age"]) - 1))
        let stale = age - (lifetime + 1) * CacheOracle.second
        refuse("it is stale by \(stale / 1_000_000) ms (§4.2)", if: stale > 0 && !mayBeStale(asked, current, stale))
        return reasons
    }

    /// Whether the origin server failed for this request, or a moment before.
    private func isFailing(_ asked: Judge.Asked) -> Bool {
        judge.hasOutages
            || (failures[asked.step["key"]] ?? []).contains {
                $0 >= asked.sentAt - 6 * CacheOracle.second && $0 <= judge.timeline.now
            }
    }

    /// §4.2.4, RFC 5861.
    private func mayBeStale(_ asked: Judge.Asked, _ current: Step, _ stale: Int64) -> Bool {
        if current["must"] != 0 || current["shared"] != 0 || current["nocache"] != 0 { return false }
        let wish = CacheOracle.wish(asked.step)
        if wish == "max-stale=3", stale <= 3 * CacheOracle.second { return true }
        if stale <= Int64(current["revalidate"]) * CacheOracle.second { return true }
        return isFailing(asked) && stale <= Int64(current["error"]) * CacheOracle.second
    }

    /// An unsafe request of this URI was answered before the request was sent, and the stored response was complete before that one began.
    private func wasInvalidated(_ asked: Judge.Asked, _ replica: Int, _ origin: Generated, _ newest: Int64) -> Bool {
        unsafe.contains { unsafe in
            guard unsafe.replica == replica, unsafe.asked.step["key"] == asked.step["key"],
                unsafe.asked.answeredAt <= asked.sentAt, newest < unsafe.asked.sentAt,
                let source = judge.asked[origin.step.number], case .answered = source.end
            else { return false }
            return source.answeredAt < unsafe.asked.sentAt
        }
    }
}
