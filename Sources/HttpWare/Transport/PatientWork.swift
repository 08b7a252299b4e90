/// Runs long work of many exchanges in small steps, so that the loop serves others in between.
///
/// The steps of one turn together take a few milliseconds, however many exchanges have some. Used on the loop's thread only.
final class PatientWork {
    private let loop: EventLoop
    private var steps = Queue<() -> Void>()
    private var isScheduled = false

    /// The time that the steps of one turn may take.
    private static let mostTime = Duration.milliseconds(4)

    init(loop: EventLoop) { self.loop = loop }

    /// Runs a step in a later turn of the loop.
    func add(_ step: @escaping () -> Void) {
        steps.append(step)
        schedule()
    }

    private func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        loop.nextTurn { [weak self] in self?.run() }
    }

    private func run() {
        isScheduled = false
        let start = loop.tick()
        // Steps that these add come in a later turn.
        var left = steps.count
        while left > 0, let step = steps.popFirst() {
            step()
            left -= 1
            if loop.tick() - start > PatientWork.mostTime { break }
        }
        if !steps.isEmpty { schedule() }
    }
}
