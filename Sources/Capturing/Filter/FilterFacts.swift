import HttpWare

/// Evaluates what can be decided by a few facts; the rest has no answer.
struct FilterFacts {
    private let facts: CaptureFilter.Facts

    init(_ facts: CaptureFilter.Facts) { self.facts = facts }

    func answer(_ node: FilterNode) -> Bool? {
        switch node {
        case .test(let test, _): return answer(test)
        case .not(let node): return answer(node).map { !$0 }
        case .all(let nodes): return answer(nodes, decidedBy: false)
        case .any(let nodes): return answer(nodes, decidedBy: true)
        }
    }

    private func answer(_ nodes: [FilterNode], decidedBy decisive: Bool) -> Bool? {
        var result: Bool? = !decisive
        for node in nodes {
            switch answer(node) {
            case decisive: return decisive
            case nil: result = nil
            default: break
            }
        }
        return result
    }

    private func answer(_ test: FilterTest) -> Bool? {
        switch test {
        case .always(let value): value
        case .url(let pattern): try? pattern.isFound(in: facts.url)
        case .domain(let pattern): try? pattern.isFound(in: TargetHost.range(in: facts.url))
        case .method(let pattern): try? pattern.isFound(in: facts.method)
        case .status(let status): facts.status == status
        case .duration(let comparison, let nanoseconds): comparison.holds(facts.duration, nanoseconds)
        case .size(let comparison, let bytes): comparison.holds(facts.size, bytes)
        case .id(let id): facts.id == id
        default: nil
        }
    }
}

/// The host in a target URI.
enum TargetHost {
    /// Without user, port and brackets.
    static func range(in url: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var start = 0
        if let colon = url.firstIndex(of: 0x3a), colon + 2 < url.count, url[colon + 1] == 0x2f, url[colon + 2] == 0x2f {
            start = colon + 3
        }
        var end = start
        while end < url.count, url[end] != 0x2f, url[end] != 0x3f, url[end] != 0x23 {
            if url[end] == 0x40 { start = end + 1 }
            end += 1
        }
        if start < end, url[start] == 0x5b {
            let inner = start + 1
            var close = inner
            while close < end, url[close] != 0x5d { close += 1 }
            return UnsafeRawBufferPointer(rebasing: url[inner..<close])
        }
        var port = start
        while port < end, url[port] != 0x3a { port += 1 }
        return UnsafeRawBufferPointer(rebasing: url[start..<port])
    }
}
