import HttpWare

/// One evaluation of a filter: what is made of an exchange is made when it is asked for, and at most once.
struct FilterEvaluation {
    /// An answer; without one, a phase that is needed has not been reached, or a limit was.
    typealias Answer = Bool?

    private let exchange: CapturedExchange
    /// How far the exchange has come; `nil` takes it as it is.
    private let phase: CapturePhase?
    private var requestContent: [UInt8]?
    private var responseContent: [UInt8]?
    private var summary: ReportSummary?
    private var decisions: [String]?
    /// Only the row of the exchange is there: fields other than `Content-Type`, content and messages are not.
    private let isRow: Bool
    private var deadline: ContinuousClock.Instant?
    /// A match reached its limit.
    private(set) var reachedLimit = false

    /// The most time for matching content in one evaluation.
    private static let longestTime = Duration.milliseconds(250)

    init(_ exchange: CapturedExchange, _ phase: CapturePhase?, isRow: Bool = false) {
        self.isRow = isRow
        self.exchange = exchange
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
        // What has one side already may be decided by it.
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
        case .url(let pattern): return try pattern.isFound(in: exchange.url)
        case .domain(let pattern): return try pattern.isFound(in: exchange.host)
        case .method(let pattern): return try pattern.isFound(in: exchange.method)
        case .status(let status): return exchange.status == status
        case .fields(let side, let pattern):
            for message in messages(side) where try pattern.isFound(in: FilterEvaluation.lines(message)) { return true }
            return false
        case .content(let side, let pattern): return try isInContent(pattern, side)
        case .contentType(let side, let pattern):
            for message in messages(side) {
                for value in message.values(of: "content-type") where try pattern.isFound(in: value) { return true }
            }
            return false
        case .hasNoResponse: return exchange.response == nil && exchange.status == nil
        case .hasResponse: return exchange.response != nil || exchange.status != nil
        case .hasFault: return exchange.fault != nil
        case .isAsset: return isAsset
        case .source(let pattern): return try exchange.client.map(pattern.isFound) ?? false
        case .destination(let pattern): return try exchange.server.map(pattern.isFound) ?? false
        case .comment(let pattern): return try pattern.isFound(in: exchange.comment)
        case .isMarked: return exchange.isPinned
        case .marker(let pattern): return try pattern.isFound(in: exchange.isPinned ? ":default:" : "")
        case .meta(let pattern): return try pattern.isFound(in: meta)
        case .kind(let kind): return exchange.kind == kind
        case .isReplay(.request): return exchange.replayOf != nil
        case .isReplay(.response): return facts()?.responder == "replay"
        case .isReplay(.either): return exchange.replayOf != nil || facts()?.responder == "replay"
        case .route(let pattern): return try exchange.route.map(pattern.isFound) ?? false
        case .service(let pattern): return try exchange.service.map(pattern.isFound) ?? false
        case .ware(let pattern):
            for ware in facts()?.wares ?? [] where ware.decision != "skipped" {
                if try pattern.isFound(in: ware.ware) { return true }
            }
            return false
        case .decision(let pattern):
            for decision in allDecisions() where try pattern.isFound(in: decision) { return true }
            return false
        case .duration(let comparison, let nanoseconds): return comparison.holds(exchange.duration, nanoseconds)
        case .size(let comparison, let bytes): return comparison.holds(exchange.contentSize, bytes)
        case .id(let id): return exchange.id == id
        case .operation(let pattern):
            for name in exchange.operations where try pattern.isFound(in: name) { return true }
            return false
        }
    }

    // MARK: What is asked

    private func messages(_ side: FilterTest.Side) -> [CapturedMessage] {
        switch side {
        case .request: [exchange.request]
        case .response: [exchange.response].compactMap(\.self)
        case .either: [exchange.request] + [exchange.response].compactMap(\.self)
        }
    }

    /// `name: value` on a line each.
    private static func lines(_ message: CapturedMessage) -> String {
        var text = ""
        for field in message.fields + message.trailers { text += "\(field.name): \(field.value)\n" }
        return text
    }

    private mutating func isInContent(
        _ pattern: Pattern, _ side: FilterTest.Side
    ) throws(Pattern.LimitReached) -> Bool {
        let now = ContinuousClock.now
        let limit = deadline ?? now + FilterEvaluation.longestTime
        deadline = limit
        guard now <= limit else { throw Pattern.LimitReached() }
        if side != .response {
            let content = requestContent ?? DecodedContent(exchange.request).bytes
            requestContent = content
            if try pattern.isFound(in: content) { return true }
        }
        if side != .request, let response = exchange.response {
            let content = responseContent ?? DecodedContent(response).bytes
            responseContent = content
            if try pattern.isFound(in: content) { return true }
        }
        for piece in exchange.messages {
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
        guard let response = exchange.response else { return false }
        return response.values(of: "content-type").contains { value in
            let type = value.lowercased()
            return FilterEvaluation.assets.contains { type.contains($0) }
        }
    }

    private var meta: String {
        var text = "id: \(exchange.id)\nlistener: \(exchange.listener)\n"
        if let route = exchange.route { text += "route: \(route)\n" }
        if let service = exchange.service { text += "service: \(service)\n" }
        if let replayed = exchange.replayOf { text += "replayOf: \(replayed)\n" }
        if !exchange.comment.isEmpty { text += "comment: \(exchange.comment)\n" }
        return text
    }

    /// What the record says; `nil` without one.
    private mutating func facts() -> ReportSummary? {
        if summary == nil { summary = exchange.summary ?? exchange.report.map(ReportSummary.init) }
        return summary
    }

    /// What the wares decided in words, also with the ware's name, and the words for the exchange as a whole.
    private mutating func allDecisions() -> [String] {
        if let decisions { return decisions }
        var words: [String] = []
        if let report = facts() {
            for ware in report.wares {
                // A decision of its own may be a phrase: its first word counts too.
                let first = ware.decision.prefix { $0 != " " }
                for word in [ware.decision, String(first)] { words += [word, "\(ware.ware):\(word)"] }
                if ware.ware == "mock", ware.decision == "aborted" { words.append("mocked") }
            }
            if report.responder == "mock" { words.append("mocked") }
            if let cache = report.cache { words.append(cache) }
            if report.isReplayed { words += ["retried", "replayed"] }
            words.append(report.end)
        }
        decisions = words
        return words
    }
}

extension Pattern {
    fileprivate func isFound(in text: String) throws(LimitReached) -> Bool {
        // A string of bytes is matched where it is.
        var text = text
        let result = text.withUTF8 { bytes -> Result<Bool, LimitReached> in
            do throws(LimitReached) {
                return .success(try matches(UnsafeRawBufferPointer(bytes)))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    fileprivate func isFound(in bytes: [UInt8]) throws(LimitReached) -> Bool {
        let result = bytes.withUnsafeBytes { bytes -> Result<Bool, LimitReached> in
            do throws(LimitReached) {
                return .success(try matches(bytes))
            } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }
}
