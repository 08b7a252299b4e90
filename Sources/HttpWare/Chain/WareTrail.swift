/// The actions of the wares in one exchange, as recorded while they run: only numbers and bytes, which readers
/// convert into texts.
///
/// Its four buffers are reused for the next exchange, so that recording allocates nothing once they have grown.
struct WareTrail: Sendable {
    /// The action of one ware.
    struct Step: Sendable {
        var started: Int64
        var duration: Int64
        /// The ware's position among the middlewares, or the postwares.
        var place: UInt16
        /// The status that belongs to the decision; 0 without one.
        var status: UInt16
        var decision: WareStep.Decision
        var side: WareStep.Side
        /// The number of the try, from 1.
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
        /// Whether it names the decision instead of adding to it.
        var isDecision = false

        var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
    }

    /// A change that a ware made.
    struct Change: Sendable {
        enum Kind: Sendable { case added, removed, allFields, method, target, status }

        let kind: Kind
        /// The field's name, the new method or target.
        var text = Text()
        /// The new status.
        var number: UInt16 = 0
    }

    /// A part of an attempt that was followed by another, or the pause between two attempts.
    struct Phase: Sendable {
        enum Name: String, Sendable { case queue, dns, connect, tls, send, firstByte, content, backoff }

        var started: Int64
        var duration: Int64
        var name: Name
        /// The number of the try, from 1.
        var attempt: UInt8
        /// The fault that ended the phase.
        var fault: GatewayError.Fault?
        var endpoint = Text()

        init(_ name: Name, _ from: Int64, _ to: Int64, replays: Int, _ fault: GatewayError.Fault?) {
            self.name = name
            started = from
            duration = to - from
            attempt = UInt8(truncatingIfNeeded: replays + 1)
            self.fault = fault
        }
    }

    /// The names of the wares; `nil` if the exchange is not observed.
    private(set) var labels: ChainLabels?
    private(set) var steps: [Step] = []
    private(set) var changes: [Change] = []
    private(set) var phases: [Phase] = []
    /// Names and notes; after the exchange has ended, followed by texts for its reader.
    private(set) var text: [UInt8] = []
    /// Whether something was dropped because a limit was reached.
    private(set) var isCut = false
    /// The note of the ware that is running.
    private var pending = Text()
    private var firstChange = 0

    /// The limits for one exchange.
    static let mostSteps = 2048
    static let mostChanges = 1024
    static let mostPhases = 256
    static let mostText = 16 << 10

    /// Begins to record, for an exchange without a record.
    mutating func beginNotes(_ labels: ChainLabels) { self.labels = labels }

    /// Discards the pending note, so that it is not attributed to the next ware.
    mutating func forgetSayings() { pending = Text() }

    /// The capacity kept for the next exchange. A larger buffer is freed, or one long target would hold its memory for ever.
    private static let usualText = 1024

    /// Empties the trail and keeps its memory, up to the usual size.
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

    /// The memory use in bytes.
    var bytes: Int {
        steps.capacity * MemoryLayout<Step>.stride + changes.capacity * MemoryLayout<Change>.stride
            + phases.capacity * MemoryLayout<Phase>.stride + text.capacity
    }

    // MARK: Recording

    /// A ware has answered; the notes and changes since the last answer belong to it.
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

    /// Appends to the note of the ware that is running.
    mutating func say(_ note: String, isDecision: Bool) {
        var words = note.unicodeScalars.prefix(256).map { $0.value < 0x20 || $0.value == 0x7f ? " " : Character($0) }
        if pending.count > 0 { words.insert(contentsOf: ", ", at: 0) }
        // Only the names of changes could lie between two notes, and these are added after the ware has answered.
        let added = add(String(words).utf8)
        guard added.count > 0 else { return }
        pending = Text(
            start: pending.count > 0 ? pending.start : added.start,
            count: UInt16(clamping: Int(pending.count) + Int(added.count)),
            isDecision: pending.isDecision || isDecision)
    }

    /// Appends to the note of a ware's last run, after its exchange has ended.
    mutating func amend(_ side: WareStep.Side, place: Int, with note: String) {
        guard let index = steps.lastIndex(where: { $0.side == side && Int($0.place) == place }) else { return }
        let former = steps[index].note
        let words = note.unicodeScalars.prefix(256).map { $0.value < 0x20 || $0.value == 0x7f ? " " : Character($0) }
        let added = add((former.count > 0 ? string(former) + ", " + String(words) : String(words)).utf8)
        guard added.count > 0 else { return }
        steps[index].note = Text(start: added.start, count: added.count, isDecision: former.isDecision)
    }

    /// Records a change by the ware that is running.
    mutating func add(_ kind: Change.Kind, _ bytes: some Collection<UInt8>, number: Int = 0) {
        guard changes.count < WareTrail.mostChanges else {
            isCut = true
            return
        }
        changes.append(Change(kind: kind, text: add(bytes), number: UInt16(truncatingIfNeeded: number)))
    }

    /// Records a finished part of an attempt.
    mutating func add(_ phase: Phase) {
        if phases.count < WareTrail.mostPhases { phases.append(phase) } else { isCut = true }
    }

    /// Stores bytes; returns an empty range if there is no room.
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

    /// The same for a target, whose bytes need not be UTF-8.
    func target(_ text: Text) -> String {
        self.text.withUnsafeBufferPointer { ReceivedText.target(UnsafeBufferPointer(rebasing: $0[text.range])) }
    }

    /// The note that names a step's decision; `nil` without one.
    func decision(_ step: Step) -> String? {
        step.note.count > 0 && step.note.isDecision ? string(step.note) : nil
    }

    func label(_ step: Step) -> String {
        let labels = step.side == .postware ? labels?.postwares : labels?.middlewares
        let place = Int(step.place)
        return labels.flatMap { place < $0.count ? $0[place] : nil } ?? ""
    }
}

/// The names of a chain's wares, in order. Records hold it and may outlive the chain.
final class ChainLabels: Sendable {
    let middlewares: [String]
    let postwares: [String]

    init(middlewares: [String], postwares: [String]) {
        self.middlewares = middlewares
        self.postwares = postwares
    }
}
