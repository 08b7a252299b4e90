/// Makes the script of a seed.
public enum Generator {
    static func script(of seed: UInt64) -> Script {
        var draw = Draw(seed, "script")
        var script = Script(seed: seed, steps: [])
        script.isCalm = draw.once(in: 8)
        let count = draw.from(2...14)
        let hasHarm = !draw.once(in: 4)
        let hasOutages = hasHarm && draw.once(in: 3)
        var at = 0
        // Most worlds are about one room, so that its requests meet.
        let room = draw.one(of: [0, 0, 1, 2, 2, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, -1])
        for number in 1...count {
            at += draw.one(of: room == 7 ? [0, 100, 3_000, 9_000, 16_000, 35_000] : [0, 0, 0, 1, 5, 30, 200, 1_500])
            script.steps.append(request(number, at: at, in: room, hasHarm: hasHarm, seed))
        }
        if room == 7 { script.steps.append(Step("move", count + 1, at: draw.from(0...at))) }
        if hasOutages {
            for number in 1...draw.from(1...2) {
                let kind = draw.one(
                    of: room == 3 || room == 4 ? ["redis", "tokens", "withdraw"] : ["restart", "hang", "idle"])
                var step = Step(kind, number, at: draw.from(0...at + 50))
                step["origin"] = draw.below(8)
                if kind == "redis" { step["hangs"] = draw.below(2) }
                if kind == "tokens" { step["delay"] = draw.one(of: [0, 300, 2_000]) }
                if step.kind != "idle", step.kind != "withdraw" { step["for"] = draw.one(of: [1, 100, 3_000]) }
                if step.kind == "restart" { step["soft"] = draw.below(2) }
                script.steps.append(step)
            }
        }
        return script
    }

    private static func request(_ number: Int, at: Int, in room: Int, hasHarm: Bool, _ seed: UInt64) -> Step {
        var draw = Draw(seed, "request", number)
        var step = Step("request", number, at: at)
        step["client"] = draw.below(5)
        step["user"] = draw.from(1...3)
        step["room"] = room >= 0 && !draw.once(in: 8) ? room : draw.below(8)
        step["method"] = draw.one(of: [0, 0, 0, 1, 2, 2, 3, 4])
        switch Room(step) {
        case .cache: cached(&step, &draw)
        case .own:
            // A client is one user, so that whose a connection is can be told.
            step["user"] = step["client"] + 1
            step["login"] = draw.one(of: [0, 0, 0, 1, 1, 2])
        case .named: step["name"] = draw.below(2)
        default: break
        }
        if [2, 3].contains(step["method"]) {
            step["length"] = draw.one(of: [0, 1, 50, 3_000, 100_000])
            step["chunked"] = draw.below(2)
        }
        step["size"] = draw.one(of: [0, 1, 30, 2_000, 70_000, 300_000])
        step["framing"] = draw.one(of: [0, 0, 1])
        step["trailers"] = draw.below(2)
        if draw.once(in: 4) { step["delay"] = draw.one(of: [1, 20, 700]) }
        if draw.once(in: 4) { step["gap"] = draw.one(of: [1, 20, 700]) }
        if draw.once(in: 6) { step["interim"] = draw.from(1...3) }
        if draw.once(in: 8) { step["pipe"] = 1 }
        guard hasHarm else { return step }
        if Room(step) == .http2, draw.once(in: 3) {
            step[draw.one(of: ["goaway", "refused"])] = draw.one(of: [1, 1, 2])
            return step
        }
        switch draw.below(16) {
        case 0: step["cut"] = draw.one(of: [1, 2, 30, 200, 1_000])
        case 1: step["reset"] = draw.one(of: [1, 2, 30, 200, 1_000])
        case 2: step["silent"] = 1
        case 3: step["closes"] = 1
        case 4: step["drops"] = 1
        case 5: step["leave"] = draw.one(of: [1, 5, 100, 2_000])
        case 6: step["half"] = 1
        case 7: step["early"] = 1
        case 8: step["slow"] = draw.one(of: [5, 300])
        case 9: step["lazy"] = draw.one(of: [5, 300, 4_000])
        case 10: step["framing"] = 2
        default: break
        }
        if draw.once(in: 6) { step["again"] = 1 }
        return step
    }

    /// The directives of a request, and of its response.
    private static func cached(_ step: inout Step, _ draw: inout Draw) {
        step["method"] = draw.one(of: [0, 0, 0, 0, 0, 0, 0, 0, 1, 2])
        step["key"] = draw.from(1...2)
        step["tenant"] = draw.one(of: [0, 0, 1])
        if draw.once(in: 6) { step["authorized"] = 1 }
        if draw.once(in: 8) { step["cookie"] = 1 }
        if draw.once(in: 5) { step["wish"] = draw.from(1...7) }
        step["age"] = draw.one(of: [0, 1, 2, 2, 4, 11])
        if draw.once(in: 8) { step["shared"] = draw.one(of: [1, 2, 4]) }
        if draw.once(in: 3) { step["tag"] = 1 }
        step["version"] = draw.one(of: [0, 0, 0, 1])
        if draw.once(in: 3) { step["vary"] = 1 }
        if draw.once(in: 4) { step["revalidate"] = draw.one(of: [1, 3]) }
        if draw.once(in: 3) { step["error"] = draw.one(of: [2, 10]) }
        for name in ["public", "private", "must", "nocache", "nostore"] where draw.once(in: 12) { step[name] = 1 }
        if draw.once(in: 8) { step["status"] = draw.one(of: [500, 503, 404]) }
    }
}
