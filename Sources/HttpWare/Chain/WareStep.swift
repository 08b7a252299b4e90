/// The action of one ware in an exchange: a step of its record, for people.
public struct WareStep: Sendable, Equatable {
    /// A ware's decision.
    public enum Decision: String, Sendable, CaseIterable {
        case passed, aborted, replaced, replayed, skipped, failed
        /// The wait was given up: a deadline passed, or the client left.
        case gaveUp
    }

    /// The direction in which the ware ran.
    public enum Side: String, Sendable {
        case request
        /// The response half of a two-sided ware.
        case responseHalf
        case postware
    }

    /// The ware's label, else its name.
    public let label: String
    public let side: Side
    public let decision: Decision
    /// The status of the response that the ware aborted with, replaced by, or rejected for a replay; `nil` without one.
    public let status: Int?
    /// Whether the ware answered after a wait.
    public let hasWaited: Bool
    /// The ware's note about its decision.
    public let note: String?
    /// Whether the note is the name of the decision: `hit`.
    public let isNamed: Bool
    /// The number of the try, from 1.
    public let attempt: Int
    /// When the ware was called, in nanoseconds of the loop's clock.
    public let started: Int64
    /// The duration in nanoseconds, waits included.
    public let duration: Int64
    /// The names of fields whose lines the ware added, removed, or replaced by others.
    public let added: [String]
    public let removed: [String]
    public let rewritten: [String]
    /// Whether the ware replaced all fields.
    public let replacedFields: Bool
    /// The method, target and status if the ware changed them.
    public let newMethod: String?
    public let newTarget: String?
    public let newStatus: Int?

    /// Whether the ware handled the response.
    public var isResponse: Bool { side != .request }

    /// The decision as one word: `passed`, `held`, `hit`. For a note that names the decision, its text before a colon.
    public var word: String { WareStep.word(decision, hasWaited, isNamed ? note : nil) }

    static func word(_ decision: Decision, _ hasWaited: Bool, _ name: String?) -> String {
        if let name { return String(name.prefix { $0 != ":" }) }
        return hasWaited && decision == .passed ? "held" : decision.rawValue
    }

    /// The decision for people: `passed`, `aborted 401`, `held 212ms behind refresh 7`, `replayed after 401`, `hit`.
    public var text: String {
        if isNamed, let note { return note }
        var text: String
        switch decision {
        case .passed: text = hasWaited ? "held \(WareStep.brief(duration))" : "passed"
        case .aborted, .replaced: text = decision.rawValue + (status.map { " \($0)" } ?? "")
        case .replayed: text = "replayed" + (status.map { " after \($0)" } ?? "")
        case .gaveUp: text = "gave up after \(WareStep.brief(duration))"
        case .skipped, .failed: text = decision.rawValue
        }
        if let note { text += " \(note)" }
        return text
    }

    /// A time in a suitable unit: `212ms`, `3.4s`, `0.08ms`.
    static func brief(_ nanoseconds: Int64) -> String {
        let microseconds = max(0, nanoseconds) / 1000
        if microseconds >= 1_000_000 { return "\(microseconds / 1_000_000).\(microseconds / 100_000 % 10)s" }
        if microseconds >= 10_000 { return "\(microseconds / 1000)ms" }
        let hundredths = microseconds / 10
        return "\(hundredths / 100).\(hundredths / 10 % 10)\(hundredths % 10)ms"
    }
}

extension WareStep {
    /// Converts a step of the trail into texts.
    init(_ step: WareTrail.Step, of trail: WareTrail) {
        label = trail.label(step)
        side = step.side
        decision = step.decision
        status = step.status == 0 ? nil : Int(step.status)
        hasWaited = step.hasWaited
        note = step.note.count == 0 ? nil : trail.string(step.note)
        isNamed = step.note.count > 0 && step.note.isDecision
        attempt = Int(step.attempt)
        started = step.started
        duration = step.duration
        var added: [String] = []
        var removed: [String] = []
        var rewritten: [String] = []
        var replacedFields = false
        var method: String?
        var target: String?
        var status: Int?
        for change in trail.changes[Int(step.firstChange)...].prefix(Int(step.changes)) {
            let text = trail.string(change.text)
            switch change.kind {
            case .removed: if !removed.contains(sameName: text) { removed.append(text) }
            case .added: if !added.contains(sameName: text) { added.append(text) }
            case .allFields: replacedFields = true
            case .method: method = text
            case .target: target = text
            case .status: status = Int(change.number)
            }
        }
        // A line removed and another added under the same name: the field was rewritten.
        rewritten = added.filter { removed.contains(sameName: $0) }
        added.removeAll { rewritten.contains($0) }
        removed.removeAll { rewritten.contains(sameName: $0) }
        self.added = added
        self.removed = removed
        self.rewritten = rewritten
        self.replacedFields = replacedFields
        newMethod = method
        newTarget = target.map(Redaction.target)
        newStatus = status
    }
}

extension [String] {
    /// Whether the list contains the name. Field names are case-insensitive. RFC 9110 §5.1.
    fileprivate func contains(sameName name: String) -> Bool {
        contains {
            $0.utf8.count == name.utf8.count
                && $0.utf8.elementsEqual(name.utf8) { ByteClass.lower($0) == ByteClass.lower($1) }
        }
    }
}
