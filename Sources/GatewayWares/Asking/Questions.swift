public import HttpWare
import Synchronization

/// The open questions of this process, and the answers that count until it ends. Safe to use from any thread.
public final class Questions: Sendable {
    /// The questions of the process.
    public static let shared = Questions()

    /// An answer that counts for later requests, too.
    public struct Remembered: Sendable {
        public let isYes: Bool
        public let subject: Question.Subject
        /// The end; `nil` if it counts until the gateway ends.
        public let until: LoopInstant?
    }

    private struct Open {
        let question: Question
        var waits: [ObjectIdentifier: LoopWait<Question.Outcome>]
        /// Whether an answer is being written to a file.
        var isAnswering = false
    }

    private struct State {
        var last = 0
        var open: [Int: Open] = [:]
        var numbers: [Digest256: Int] = [:]
        var remembered: [Digest256: Remembered] = [:]
    }

    private let state = Mutex(State())
    /// The most answers that are remembered.
    static let most = 10_000

    init() {}

    // MARK: For people

    /// The open questions, the oldest first.
    public var all: [Question] { state.withLock { $0.open.values.map(\.question).sorted { $0.id < $1.id } } }

    /// The question with that number; `nil` if it is not open.
    public func find(_ id: Int) -> Question? { state.withLock { $0.open[id]?.question } }

    /// The number of requests that wait for the answer.
    public func waiting(_ question: Question) -> Int { state.withLock { $0.open[question.id]?.waits.count ?? 0 } }

    /// The answers that still count, by the hexadecimal digest of their subject.
    public func remembered(at now: LoopInstant) -> [Remembered] {
        state.withLock { state in
            state.remembered.values.filter { $0.until.map { now < $0 } ?? true }
                .sorted { ($0.subject.since, $0.subject.url) < ($1.subject.since, $1.subject.url) }
        }
    }

    /// Takes an answer back. Returns false if no answer is remembered for that digest.
    public func forget(_ key: Digest256) -> Bool {
        state.withLock { $0.remembered.removeValue(forKey: key) != nil }
    }

    /// The failure of an answer.
    public enum Refusal: Error {
        /// The question is not open any more.
        case gone
        /// An answer to it cannot count for that time.
        case span
        /// The file of approvals cannot be written.
        case file(SystemError)
        /// As many answers as can be remembered are.
        case full
    }

    /// Answers a question. With `.always` it writes a file, which blocks.
    public func answer(
        _ question: Question, isYes: Bool, for span: Question.Span, at now: LoopInstant, wall: WallTime,
        by person: String = "a person"
    ) throws(Refusal) {
        guard question.allows(span) else { throw .span }
        // The first answer counts, also while it is written.
        try state.withLock { state throws(Refusal) in
            guard state.open[question.id]?.isAnswering == false else { throw .gone }
            state.open[question.id]?.isAnswering = true
        }
        if span == .always, let approvals = question.approvals {
            do {
                try approvals.add(Approval(question.subject, isYes: isYes, at: wall))
            } catch {
                state.withLock { $0.open[question.id]?.isAnswering = false }
                throw .file(error)
            }
        }
        let subject = question.subject
        let open = try state.withLock { state throws(Refusal) -> Open? in
            // The clients may have left while the answer was written.
            guard let open = state.open[question.id] else { return nil }
            let until: LoopInstant?? =
                switch span {
                case .once, .always: .none
                case .run: .some(nil)
                case .lasting(let duration): .some(now + duration)
                }
            if let until {
                if state.remembered.count >= Self.most {
                    state.remembered = state.remembered.filter { $0.value.until.map { now < $0 } ?? true }
                }
                guard state.remembered.count < Self.most else {
                    state.open[question.id]?.isAnswering = false
                    throw .full
                }
                state.remembered[subject.key] = Remembered(isYes: isYes, subject: subject, until: until)
            }
            state.open[question.id] = nil
            if state.numbers[subject.key] == question.id { state.numbers[subject.key] = nil }
            return open
        }
        for wait in open?.waits.values.map(\.self) ?? [] { wait.resume(returning: .answered(isYes: isYes, by: person)) }
    }

    // MARK: For requests

    /// The remembered answer; `nil` without one.
    func answer(to key: Digest256, at now: LoopInstant) -> Bool? {
        state.withLock { state in
            guard let found = state.remembered[key] else { return nil }
            guard found.until.map({ now < $0 }) ?? true else {
                state.remembered[key] = nil
                return nil
            }
            return found.isYes
        }
    }

    /// Adds a request to the open question about its subject, or opens one. Returns the question, and whether it is new. A request whose
    /// content is not known to its end has a question of its own.
    func ask(
        _ subject: Question.Subject, _ wait: LoopWait<Question.Outcome>, spans: [Ask.Remember], until: WallTime,
        _ approvals: ApprovalFile?
    ) -> (question: Question, isNew: Bool) {
        state.withLock { state in
            if subject.isWhole, let number = state.numbers[subject.key], let open = state.open[number],
                !open.isAnswering
            {
                state.open[number]?.waits[ObjectIdentifier(wait)] = wait
                return (open.question, false)
            }
            state.last += 1
            let question = Question(state.last, subject, spans: spans, until: until, approvals: approvals)
            state.open[question.id] = Open(question: question, waits: [ObjectIdentifier(wait): wait])
            if subject.isWhole { state.numbers[subject.key] = question.id }
            return (question, true)
        }
    }

    /// A request waits no longer. Its question ends with the last one.
    func leave(_ question: Question, _ wait: LoopWait<Question.Outcome>) {
        state.withLock { state in
            state.open[question.id]?.waits[ObjectIdentifier(wait)] = nil
            guard state.open[question.id]?.waits.isEmpty == true else { return }
            state.open[question.id] = nil
            if state.numbers[question.subject.key] == question.id { state.numbers[question.subject.key] = nil }
        }
    }
}
