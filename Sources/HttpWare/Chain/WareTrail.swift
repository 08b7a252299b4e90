/// What the wares did to one exchange, as it is noted while they run: numbers and bytes only, made into texts by those who
/// read it.
///
/// Its four buffers are used again for the next exchange, so that noting allocates nothing once they have grown.
struct WareTrail: Sendable {
    /// What one ware did.
    struct Step: Sendable {
        var started: Int64
        var duration: Int64
        /// The ware's place among the middlewares, or the postwares.
        var place: UInt16
        /// The status that belongs to the decision; 0 for none.
        var status: UInt16
        var decision: WareStep.Decision
        var side: WareStep.Side
        /// Which time the request went inward, from 1.
        var attempt: UInt8
        var hasWaited: Bool
        var note: Text
        var firstChange: UInt16
        var changes: UInt16
    }

    /// A range of `text`.
    struct Text: Sendable {
        var start: UInt16 = 0
        var count: UInt16 = 0
        /// It names the decision, and is not beside it.
        var isDecision = false

        var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
    }

    /// Something that a ware changed.
    struct Change: Sendable {
        enum Kind: Sendable { case added, removed, allFields, method, target, status }

        let kind: Kind
        /// The field's name, the new method or target.
        var text = Text()
        /// The new status.
        var number: UInt16 = 0
    }

    /// A part of an attempt that another one followed, or the pause between two.
    struct Phase: Sendable {
        enum Name: String, Sendable { case queue, dns, connect, tls, send, firstByte, content, backoff }

        var started: Int64
        var duration: Int64
        var name: Name
        /// Which time the request went inward, from 1.
        var attempt: UInt8
        /// What ended it.
        var fault: GatewayError.Fault?
        var endpoint: Text
    }

    /// What the wares are called; `nil` where nobody observes.
    private(set) var labels: ChainLabels?
    private(set) var steps: [Step] = []
    private(set) var changes: [Change] = []
    private(set) var phases: [Phase] = []
    /// Names and notes; behind them, once the exchange has ended, what its reader needs.
    private(set) var text: [UInt8] = []
    /// There was more than is kept.
    private(set) var isCut = false
    /// What the ware at work has said.
    private var pending = Text()
    private var firstChange = 0

    /// The most that is kept of one exchange.
    static let mostSteps = 2048
    static let mostChanges = 1024
    static let mostPhases = 256
    static let mostText = 16 << 10

    /// Begins to take notes, of an exchange that has none yet.
    mutating func beginNotes(_ labels: ChainLabels) { self.labels = labels }

    /// What was said before belongs to no ware that is asked from now on.
    mutating func forgetSayings() { pending = Text() }

    /// What is kept for the next exchange: more is let go, or one long target would hold its memory for all that follow.
    private static let usualText = 1024

    /// Empties it and keeps its memory, up to the usual size.
    mutating func reset() {
        labels = nil
        if !steps.isEmpty { steps.removeAll(keepingCapacity: true) }
        if !changes.isEmpty { changes.removeAll(keepingCapacity: true) }
        if !phases.isEmpty { phases.removeAll(keepingCapacity: true) }
        if !text.isEmpty { text.removeAll(keepingCapacity: text.capacity <= WareTrail.usualText) }
        isCut = false
        pending = Text()
        firstChange = 0
    }

    /// How much memory it holds.
    var bytes: Int {
        steps.capacity * MemoryLayout<Step>.stride + changes.capacity * MemoryLayout<Change>.stride
            + phases.capacity * MemoryLayout<Phase>.stride + text.capacity
    }

    // MARK: Taking notes

    /// A ware has answered; what was said and changed since the last answer is its own.
    mutating func add(
        _ decision: WareStep.Decision, _ side: WareStep.Side, place: Int, status: Int, started: Int64, ended: Int64,
        replays: Int, hasWaited: Bool
    ) {
        let first = firstChange
        let count = changes.count
        let note = pending
        if note.count > 0 { pending = Text() }
        firstChange = count
        guard steps.count < WareTrail.mostSteps else {
            isCut = true
            return
        }
        steps.append(
            Step(
                started: started, duration: ended &- started, place: UInt16(truncatingIfNeeded: place),
                status: UInt16(truncatingIfNeeded: status), decision: decision, side: side,
                attempt: UInt8(truncatingIfNeeded: replays &+ 1), hasWaited: hasWaited, note: note,
                firstChange: UInt16(truncatingIfNeeded: first), changes: UInt16(truncatingIfNeeded: count &- first)))
    }

    /// The ware at work says something; what it said before stays in front of it.
    mutating func say(_ note: String, isDecision: Bool) {
        var words = note.unicodeScalars.prefix(256).map { $0.value < 0x20 || $0.value == 0x7f ? " " : Character($0) }
        if pending.count > 0 { words.insert(contentsOf: ", ", at: 0) }
        // Only the names of what was changed can stand between two sayings, and they are taken when the ware has answered.
        let added = add(String(words).utf8)
        guard added.count > 0 else { return }
        pending = Text(
            start: pending.count > 0 ? pending.start : added.start,
            count: UInt16(clamping: Int(pending.count) + Int(added.count)),
            isDecision: pending.isDecision || isDecision)
    }

    /// A ware says something after its exchange has ended: behind what it said the last time that it was asked there.
    mutating func amend(_ side: WareStep.Side, place: Int, with note: String) {
        guard let index = steps.lastIndex(where: { $0.side == side && Int($0.place) == place }) else { return }
        let former = steps[index].note
        let words = note.unicodeScalars.prefix(256).map { $0.value < 0x20 || $0.value == 0x7f ? " " : Character($0) }
        let added = add((former.count > 0 ? string(former) + ", " + String(words) : String(words)).utf8)
        guard added.count > 0 else { return }
        steps[index].note = Text(start: added.start, count: added.count, isDecision: former.isDecision)
    }

    /// The ware at work changed something.
    mutating func add(_ kind: Change.Kind, _ bytes: some Collection<UInt8>, number: Int = 0) {
        guard changes.count < WareTrail.mostChanges else {
            isCut = true
            return
        }
        changes.append(Change(kind: kind, text: add(bytes), number: UInt16(truncatingIfNeeded: number)))
    }

    /// A part of an attempt is over.
    mutating func add(_ phase: Phase) {
        if phases.count < WareTrail.mostPhases { phases.append(phase) } else { isCut = true }
    }

    /// Keeps bytes; none where there is no room for them.
    mutating func add(_ bytes: some Collection<UInt8>) -> Text {
        let count = bytes.count
        guard text.count + count <= WareTrail.mostText else {
            isCut = true
            return Text()
        }
        let start = text.count
        text.append(contentsOf: bytes)
        return Text(start: UInt16(truncatingIfNeeded: start), count: UInt16(truncatingIfNeeded: count))
    }

    // MARK: Reading

    func string(_ text: Text) -> String {
        self.text.withUnsafeBufferPointer { String(decoding: $0[text.range], as: UTF8.self) }
    }

    /// The note that names a step's decision; `nil` if it has none.
    func decision(_ step: Step) -> String? {
        step.note.count > 0 && step.note.isDecision ? string(step.note) : nil
    }

    func label(_ step: Step) -> String {
        let labels = step.side == .postware ? labels?.postwares : labels?.middlewares
        let place = Int(step.place)
        return labels.flatMap { place < $0.count ? $0[place] : nil } ?? ""
    }
}

/// What the wares of a chain are called, in their order: kept by records, which may outlive the chain.
final class ChainLabels: Sendable {
    let middlewares: [String]
    let postwares: [String]

    init(middlewares: [String], postwares: [String]) {
        self.middlewares = middlewares
        self.postwares = postwares
    }
}
