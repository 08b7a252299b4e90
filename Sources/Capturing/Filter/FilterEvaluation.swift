import HttpWare

/// One evaluation of a filter. Derived values are computed when they are first needed, and at most once.
struct FilterEvaluation {
    /// The answer; `nil` if a needed phase has not been reached, or a limit was reached.
    typealias Answer = Bool?

    /// A box, because copying the exchange's many parts would be slow.
    private let box: CapturedBox
    /// The progress of the exchange; `nil` evaluates it in its current state.
    private let phase: CapturePhase?
    private var requestContent: [UInt8]?
    private var responseContent: [UInt8]?
    private var summary: ReportSummary?
    /// Whether only the row of the exchange is available. A row has no content, no messages, and no fields except
    /// `Content-Type`.
    private let isRow: Bool
    private var deadline: ContinuousClock.Instant?
    /// Whether a match reached its limit.
    private(set) var reachedLimit = false

    /// The most time for matching content in one evaluation.
    static let longestTime = Duration.milliseconds(250)

    init(_ box: CapturedBox, _ phase: CapturePhase?, isRow: Bool = false) {
        self.isRow = isRow
        self.box = box
        self.phase = phase
    }

    mutating func answer(_ node: FilterNode) -> Answer {
        switch node {
        case .test(let test, _): return answer(test)
        case .not(let node): return answer(node).map { !$0 }
        case .all(let nodes): return answer(nodes, decidedBy: false)
        case .any(let nodes): return answer(nodes, decidedBy: true)
        }
    }

    private mutating func answer(_ nodes: [FilterNode], decidedBy decisive: Bool) -> Answer {
        var result: Answer = !decisive
        for node in nodes {
            switch answer(node) {
            case decisive: return decisive
            case nil: result = nil
            default: break
            }
        }
        return result
    }

    private mutating func answer(_ test: FilterTest) -> Answer {
        if isRow, test.needsMore { return nil }
        let isKnown = phase.map { $0 >= test.phase } ?? true
        // A test of either side may already be decided by the side that is known.
        switch test {
        case .fields(.either, _), .contentType(.either, _), .content(.either, _): break
        default: if !isKnown { return nil }
        }
        do throws(Pattern.LimitReached) {
            let isTrue = try holds(test)
            return isTrue || isKnown ? isTrue : nil
        } catch {
            reachedLimit = true
            return nil
        }
    }

    private mutating func holds(_ test: FilterTest) throws(Pattern.LimitReached) -> Bool {
        switch test {
        case .always(let value): return value
        case .url(let pattern): return try pattern.isFound(in: box.exchange.url)
        case .domain(let pattern): return try pattern.isFound(inPartOf: box.exchange.url, TargetHost.range)
        case .method(let pattern): return try pattern.isFound(in: box.exchange.method)
        case .status(let status): return status.contains(box.exchange.status)
        case .fields(let side, let pattern):
            if side != .response, try pattern.isFound(in: box.exchange.request.lines) { return true }
            guard side != .request, let response = box.exchange.response else { return false }
            return try pattern.isFound(in: response.lines)
        case .content(let side, let pattern): return try isInContent(pattern, side)
        case .contentType(let side, let pattern):
            if side != .response, try box.exchange.request.hasType(pattern) { return true }
            guard side != .request, let response = box.exchange.response else { return false }
            return try response.hasType(pattern)
        case .hasNoResponse: return box.exchange.response == nil && box.exchange.status == nil
        case .hasResponse: return box.exchange.response != nil || box.exchange.status != nil
        case .hasFault: return box.exchange.fault != nil
        case .isError: return box.exchange.fault != nil || box.exchange.status ?? 0 >= 400
        case .isAsset: return isAsset
        case .source(let pattern): return try box.exchange.isClient(pattern)
        case .destination(let pattern): return try box.exchange.server.map(pattern.isFound) ?? false
        case .comment(let pattern): return try pattern.isFound(in: box.exchange.comment)
        case .isMarked: return box.exchange.isPinned
        case .marker(let pattern): return try pattern.isFound(in: box.exchange.isPinned ? ":default:" : "")
        case .meta(let pattern): return try pattern.isFound(in: meta)
        case .kind(let kind): return box.exchange.kind == kind
        case .isReplay(.request): return box.exchange.replayOf != nil
        case .isReplay(.response): return facts()?.responder == "replay"
        case .isReplay(.either): return box.exchange.replayOf != nil || facts()?.responder == "replay"
        case .route(let pattern): return try box.exchange.route.map(pattern.isFound) ?? false
        case .service(let pattern): return try box.exchange.service.map(pattern.isFound) ?? false
        case .ware(let pattern):
            for ware in facts()?.wares ?? [] where ware.decision != "skipped" {
                if try pattern.isFound(in: ware.ware) { return true }
            }
            return false
        case .decision(let pattern):
            guard let summary = facts() else { return false }
            var search = DecisionSearch(pattern)
            return try search.isFound(in: summary)
        case .duration(let comparison, let nanoseconds): return comparison.holds(box.exchange.duration, nanoseconds)
        case .size(let comparison, let bytes): return comparison.holds(box.exchange.contentSize, bytes)
        case .id(let id): return id.contains(box.exchange.id)
        case .operation(let pattern):
            for name in box.exchange.operations where try pattern.isFound(in: name) { return true }
            return false
        }
    }

    // MARK: Facts

    private mutating func isInContent(
        _ pattern: FilterPattern, _ side: FilterTest.Side
    ) throws(Pattern.LimitReached) -> Bool {
        let now = ContinuousClock.now
        let limit = deadline ?? now + FilterEvaluation.longestTime
        deadline = limit
        guard now <= limit else { throw Pattern.LimitReached() }
        if side != .response {
            let content = requestContent ?? DecodedContent(box.exchange.request).bytes
            requestContent = content
            if try pattern.isFound(in: content) { return true }
        }
        if side != .request, let response = box.exchange.response {
            let content = responseContent ?? DecodedContent(response).bytes
            responseContent = content
            if try pattern.isFound(in: content) { return true }
        }
        for piece in box.exchange.messages {
            guard case .webSocket = piece.form else { continue }
            if side == .request && piece.direction != .send || side == .response && piece.direction != .receive {
                continue
            }
            if try pattern.isFound(in: piece.data) { return true }
        }
        return false
    }

    private static let assets = [
        "text/javascript", "application/x-javascript", "application/javascript", "text/css", "image/", "font/",
        "application/font",
    ]

    private var isAsset: Bool {
        guard let response = box.exchange.response else { return false }
        return response.values(of: "content-type").contains { value in
            let type = value.lowercased()
            return FilterEvaluation.assets.contains { type.contains($0) }
        }
    }

    private var meta: String {
        var text = "id: \(box.exchange.id)\nlistener: \(box.exchange.listener)\n"
        if let route = box.exchange.route { text += "route: \(route)\n" }
        if let service = box.exchange.service { text += "service: \(service)\n" }
        if let replayed = box.exchange.replayOf { text += "replayOf: \(replayed)\n" }
        if !box.exchange.comment.isEmpty { text += "comment: \(box.exchange.comment)\n" }
        return text
    }

    /// The summary of the record; `nil` without a record.
    private mutating func facts() -> ReportSummary? {
        if summary == nil { summary = box.exchange.summaryOfRecord }
        return summary
    }
}

extension CapturedMessage {
    /// One line `name: value` for each field.
    fileprivate var lines: [UInt8] { trailers.isEmpty ? fields.text : fields.text + trailers.text }

    fileprivate func hasType(_ pattern: FilterPattern) throws(Pattern.LimitReached) -> Bool {
        var next = 0
        while let value = fields.nextValue(of: "content-type", from: &next) {
            if try pattern.isFound(in: value) { return true }
        }
        return false
    }
}

extension CapturedExchange {
    fileprivate func isClient(_ pattern: FilterPattern) throws(Pattern.LimitReached) -> Bool {
        guard case .ip(let address, let port)? = peer, let bits = address.ipv4Bits else {
            return try client.map(pattern.isFound) ?? false
        }
        // The bytes are made without a `String` for each address.
        var text: [UInt8] = []
        text.reserveCapacity(24)
        func add(_ number: Int) {
            if number >= 10 { add(number / 10) }
            text.append(0x30 + UInt8(number % 10))
        }
        add(Int(bits >> 24))
        for shift in [16, 8, 0] as [UInt32] {
            text.append(0x2e)
            add(Int(bits >> shift & 0xff))
        }
        text.append(0x3a)
        add(Int(port))
        return try pattern.isFound(in: text)
    }
}
