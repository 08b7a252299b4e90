import HttpWare

/// The content of a response on its way from the loop to a task. Its size is limited, so a slow task slows the origin server
/// down and does not block the loop. Guarded by a mutex.
final class ContentPipe: Sendable {
    private struct State {
        var pieces: [[UInt8]] = []
        var bytes = 0
        var isPaused = false
        var end: Result<Void, GatewayError>?
        var waiting: LoopWait<Void>?
    }

    private let state = ThreadLock(State())
    /// The loop stops reading at this number of waiting bytes, and continues when half of them were taken.
    private let limit: Int
    /// Called when the loop may read again. May be called on any thread.
    private let onDrain: @Sendable () -> Void

    init(limit: Int = 256 << 10, onDrain: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.onDrain = onDrain
    }

    /// Adds a piece. Returns whether the loop has to wait.
    func push(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (waiting, isFull) = state.withLock { state in
            // Small pieces are merged.
            if let last = state.pieces.indices.last, state.pieces[last].count + bytes.count <= 64 << 10 {
                state.pieces[last].append(contentsOf: bytes)
            } else {
                state.pieces.append(Array(bytes))
            }
            state.bytes += bytes.count
            if state.bytes >= limit { state.isPaused = true }
            return (state.waiting.take(), state.isPaused)
        }
        waiting?.resume(returning: ())
        return isFull
    }

    /// Ends the content. Only the first end counts.
    func end(_ result: Result<Void, GatewayError>) {
        let waiting = state.withLock { state in
            state.end = state.end ?? result
            return state.waiting.take()
        }
        waiting?.resume(returning: ())
    }

    /// The next piece; `nil` at the end. Throws the error that cut the response off, or `CancellationError`. For one task.
    func next() async throws -> [UInt8]? {
        while true {
            let (step, mayResume) = state.withLock { state -> (Step, Bool) in
                if !state.pieces.isEmpty {
                    let piece = state.pieces.removeFirst()
                    state.bytes -= piece.count
                    let mayResume = state.isPaused && state.bytes <= limit / 2
                    if mayResume { state.isPaused = false }
                    return (.piece(piece), mayResume)
                }
                if let end = state.end { return (.end(end), false) }
                let wait = LoopWait<Void>()
                state.waiting = wait
                return (.wait(wait), false)
            }
            if mayResume { onDrain() }
            switch step {
            case .piece(let piece): return piece
            case .end(let end):
                try end.get()
                return nil
            case .wait(let wait): try await wait.value()
            }
        }
    }

    private enum Step {
        case piece([UInt8])
        case end(Result<Void, GatewayError>)
        case wait(LoopWait<Void>)
    }

    /// The number of waiting bytes.
    var waitingBytes: Int { state.withLock { $0.bytes } }
}
