import GatewayConfig
import HttpGateway
import HttpWare

/// An explanation for people: the decisions on the left, the lines of the configuration that caused them on the right.
struct ExplanationText {
    private var rows: [(left: String, place: String)] = []
    private let mask: ExplanationMask
    /// The most routes without a match that are shown.
    private static let mostPassed = 10
    /// The most content of an answer that is shown.
    private static let mostContent = 200
    private static let widest = 72

    init(_ explanation: Explanation) {
        mask = ExplanationMask(explanation)
        addTarget(explanation)
        addPassed(explanation.passed)
        addMiddlewares(explanation)
        addPostwares(explanation)
        addEnd(explanation.run)
    }

    /// The lines, with their places aligned.
    var text: String {
        let width = min(Self.widest, rows.filter { !$0.place.isEmpty }.map(\.left.count).max() ?? 0)
        return rows.map { row in
            guard !row.place.isEmpty else { return row.left }
            return row.left + String(repeating: " ", count: max(0, width - row.left.count)) + "  " + row.place
        }.joined(separator: "\n")
    }

    private mutating func add(_ left: String, _ place: SourceLocation? = nil) {
        rows.append((TerminalStyle.plain.shown(mask.text(left)), place.map { $0 == .code ? "" : "\($0)" } ?? ""))
    }

    // MARK: The target

    private mutating func addTarget(_ explanation: Explanation) {
        add(mask.target(explanation.asked[0]))
        for line in explanation.asked.dropFirst() { add("  " + mask.line(line)) }
        add("")
        let listener = explanation.listener
        add("listener  \(listener.name) (\(listener.mode.rawValue), \(listener.bind))", listener.location)
        if let interception = explanation.interception {
            add("tunnel    \(interception)", listener.intercept?.location)
        }
        guard let route = explanation.route?.route else {
            if explanation.run.isRouted { add("route     none; the listener's chain runs alone") }
            return
        }
        add("route     \(route.name)", route.location)
        for capture in explanation.run.captures {
            add("          {path.\(capture.name)} = \(capture.value)")
        }
        guard let service = explanation.service else {
            add("service   none; the chain must answer")
            return
        }
        if !route.shares.isEmpty {
            let all = route.shares.reduce(0) { $0 + $1.weight }
            let shares = route.shares.map { "\($0.serviceName) \($0.weight) of \(all)" }.joined(separator: ", ")
            add(
                "split     \(shares)\(route.sticky.map { "; sticky by \($0.words)" } ?? "; drawn at random")",
                route.location)
        }
        add("service   \(service.name)", service.location)
        for endpoint in service.endpoints {
            let weight = service.endpoints.count > 1 ? " ×\(endpoint.weight)" : ""
            add("          \(endpoint.url)\(weight)\(endpoint.isBackup ? " backup" : "")", endpoint.location)
        }
        if let fallback = service.fallbacks.first { add("fallback  \(fallback), while \(service.name) is down") }
    }

    private mutating func addPassed(_ passed: [Explanation.Passed]) {
        guard !passed.isEmpty else { return }
        add("")
        add("earlier routes that do not match")
        if passed.count > Self.mostPassed { add("  … \(passed.count - Self.mostPassed) more; --json shows all") }
        for one in passed.suffix(Self.mostPassed) {
            add("  \(one.route.name): \(one.reason)", one.route.location)
        }
    }

    // MARK: The chain

    private mutating func addMiddlewares(_ explanation: Explanation) {
        let entries = explanation.chain.entries.middlewares
        guard !entries.isEmpty else { return }
        add("")
        add("middlewares")
        for (index, entry) in entries.enumerated() {
            let step = explanation.run.middlewares[index]
            var what = step.decision.word
            switch step.decision {
            case .failed(let reason): what += ": \(reason)"
            case .waits, .needsContent: what += "; the following lines assume that it passed"
            default: break
            }
            add("  \(index + 1). \(title(of: entry)) – \(what)", entry.location)
            addDetails(of: entry)
            for note in step.notes { add("       \(note)") }
            if let target = step.target { add("       → \(mask.target(target))") }
            for line in step.removed { add("       - \(mask.line(line))") }
            for line in step.added { add("       + \(mask.line(line))") }
        }
    }

    private mutating func addPostwares(_ explanation: Explanation) {
        let entries = explanation.chain.entries.postwares
        guard !entries.isEmpty else { return }
        add("")
        add("postwares, on the way back")
        for (index, entry) in entries.enumerated() {
            add("  \(index + 1). \(title(of: entry)) – \(explanation.run.postwares[index].word)", entry.location)
            addDetails(of: entry)
        }
    }

    private func title(of entry: ChainEntry) -> String {
        entry.wareName == entry.label ? entry.label : "\(entry.label) (\(entry.wareName))"
    }

    private mutating func addDetails(of entry: ChainEntry) {
        if entry.options.entries?.isEmpty == false {
            let options = mask.text(entry.options.masked.flow)
            add("       \(options.count > 160 ? options.prefix(160) + "…" : options)")
        }
        if let condition = entry.condition { add("       if \(condition.options.words)") }
    }

    // MARK: The result

    private mutating func addEnd(_ run: DryRun) {
        add("")
        let doubt = run.isAddressJudged ? ", unless its address is private" : ""
        if let destination = run.destination {
            if run.head.isEmpty {
                add("opens a tunnel to \(destination)\(doubt)")
            } else {
                add("goes to \(destination)\(doubt)")
                add("  \(mask.target(run.head[0]))")
                for line in run.head.dropFirst() { add("  \(mask.line(line))") }
            }
        } else if let response = run.response {
            add("goes nowhere; \(run.responder.name) answers \(response.status) \(response.status.reasonPhrase)")
            if let failure = run.failure { add("  because \(failure.reason)") }
            for (name, value) in response.fields { add("  \(mask.line("\(name): \(value)"))") }
            if run.failure == nil, let bytes = response.content.bytes {
                add("")
                let shown = mask.text(String(decoding: bytes, as: UTF8.self)).prefix(Self.mostContent)
                for line in shown.split(whereSeparator: \.isNewline) { add("  \(line.filter { !$0.isControl })") }
            }
        }
    }
}

extension Character {
    /// The text without control characters.
    fileprivate var isControl: Bool { unicodeScalars.contains { $0.properties.generalCategory == .control } }
}
