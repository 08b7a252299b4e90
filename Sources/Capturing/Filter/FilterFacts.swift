import HttpWare

extension CaptureFilter {
    /// The parts of an exchange, read in place. A filter over many rows does not have to make an exchange of each row.
    public struct Facts {
        public typealias Bytes = UnsafeRawBufferPointer

        public var id: Int
        public var url: Bytes
        public var method: Bytes
        public var status: Int?
        /// The sum of both contents' sizes, in bytes.
        public var size: Int
        /// The duration in nanoseconds.
        public var duration: Int64
        /// `nil` until the filter needs them.
        public var details: Details?
        public var parts: Parts?

        public init(
            id: Int, url: Bytes, method: Bytes, status: Int?, size: Int, duration: Int64
        ) {
            self.id = id
            self.url = url
            self.method = method
            self.status = status
            self.size = size
            self.duration = duration
        }
    }

    /// The other parts of a row, except the parts that users can change.
    public struct Details {
        public var kind = CapturedExchange.Kind.http
        public var route: Facts.Bytes?
        public var service: Facts.Bytes?
        public var client: Facts.Bytes?
        public var server: Facts.Bytes?
        public var hasFault = false
        public var isRepeated = false
        public var operations: [Facts.Bytes] = []
        /// The values of `Content-Type`. `responseTypes` is `nil` if there is no response.
        public var requestTypes: [Facts.Bytes] = []
        public var responseTypes: [Facts.Bytes]?
        public var summary: ReportSummary?

        public init() {}
    }

    /// The fields and contents of an exchange.
    public struct Parts {
        public var request = Message()
        public var response: Message?
        /// The messages of a WebSocket.
        public var messages: [(direction: CapturedPiece.Direction, data: Facts.Bytes)] = []

        /// A message. Its fields are in the form in which filters search them.
        public struct Message {
            public var lines: [UInt8] = []
            public var content = Facts.Bytes(start: nil, count: 0)
            /// Whether the content has a coding, so that it must be decoded first.
            public var isCoded = false

            public init() {}
        }

        public init() {}
    }
}

/// Evaluates the operators that the facts decide. The other operators have no answer.
struct FilterFacts {
    private let facts: CaptureFilter.Facts
    /// The limit for searches in content; `nil` without parts.
    private let deadline: ContinuousClock.Instant?

    init(_ facts: CaptureFilter.Facts) {
        self.facts = facts
        deadline = facts.parts == nil ? nil : .now + FilterEvaluation.longestTime
    }

    /// The part of a row that decides an operator.
    enum Need { case firstFacts, details, summary, parts, wholeRow }

    static func need(_ test: FilterTest) -> Need {
        switch test {
        case .always, .url, .domain, .method, .status, .duration, .size, .id: .firstFacts
        case .decision, .isReplay(.response), .isReplay(.either): .summary
        case .fields, .content: .parts
        // These are seldom used, or users can change them.
        case .isAsset, .comment, .isMarked, .marker, .meta, .ware: .wholeRow
        default: .details
        }
    }

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
        case .status(let status): status.contains(facts.status)
        case .duration(let comparison, let nanoseconds): comparison.holds(facts.duration, nanoseconds)
        case .size(let comparison, let bytes): comparison.holds(facts.size, bytes)
        case .id(let id): id.contains(facts.id)
        case .fields, .content: facts.parts.flatMap { answer(test, $0) }
        default: facts.details.flatMap { answer(test, $0) }
        }
    }

    private func answer(_ test: FilterTest, _ details: CaptureFilter.Details) -> Bool? {
        func isFound(_ pattern: FilterPattern, _ bytes: CaptureFilter.Facts.Bytes?) -> Bool? {
            bytes.map { try? pattern.isFound(in: $0) } ?? false
        }
        func isFound(_ pattern: FilterPattern, among all: [CaptureFilter.Facts.Bytes]) -> Bool? {
            for bytes in all {
                guard let found = try? pattern.isFound(in: bytes) else { return nil }
                if found { return true }
            }
            return false
        }
        switch test {
        case .contentType(.request, let pattern): return isFound(pattern, among: details.requestTypes)
        case .contentType(.response, let pattern): return isFound(pattern, among: details.responseTypes ?? [])
        case .contentType(.either, let pattern):
            return isFound(pattern, among: details.requestTypes + (details.responseTypes ?? []))
        case .hasNoResponse: return details.responseTypes == nil && facts.status == nil
        case .hasResponse: return details.responseTypes != nil || facts.status != nil
        case .hasFault: return details.hasFault
        case .isError: return details.hasFault || facts.status ?? 0 >= 400
        case .source(let pattern): return isFound(pattern, details.client)
        case .destination(let pattern): return isFound(pattern, details.server)
        case .kind(let kind): return details.kind == kind
        case .isReplay(.request): return details.isRepeated
        case .isReplay(.response): return details.summary?.responder == "replay"
        case .isReplay(.either): return details.isRepeated || details.summary?.responder == "replay"
        case .route(let pattern): return isFound(pattern, details.route)
        case .service(let pattern): return isFound(pattern, details.service)
        case .operation(let pattern): return isFound(pattern, among: details.operations)
        case .decision(let pattern):
            guard let summary = details.summary else { return false }
            var search = DecisionSearch(pattern)
            return try? search.isFound(in: summary)
        default: return nil
        }
    }

    private func answer(_ test: FilterTest, _ parts: CaptureFilter.Parts) -> Bool? {
        switch test {
        case .fields(let side, let pattern):
            if side != .response {
                guard let found = try? pattern.isFound(in: parts.request.lines) else { return nil }
                if found { return true }
            }
            guard side != .request, let response = parts.response else { return false }
            return try? pattern.isFound(in: response.lines)
        case .content(let side, let pattern):
            if let deadline, .now > deadline { return nil }
            for message in [side == .response ? nil : parts.request, side == .request ? nil : parts.response] {
                guard let message else { continue }
                guard !message.isCoded, let found = try? pattern.isFound(in: message.content) else { return nil }
                if found { return true }
            }
            for (direction, data) in parts.messages
            where side == .either || (side == .request) == (direction == .send) {
                guard let found = try? pattern.isFound(in: data) else { return nil }
                if found { return true }
            }
            return false
        default: return nil
        }
    }
}

/// The host in a target URI.
enum TargetHost {
    /// The host without user, port and brackets.
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
