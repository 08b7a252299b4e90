import Synchronization

extension EventLoop {
    /// Waits for a duration of the loop's clock. Throws `CancellationError` as soon as the task is cancelled.
    ///
    /// From any task; one that prefers this loop does not leave it. About a hundred times cheaper than `Task.sleep`.
    public func sleep(for duration: Duration) async throws(CancellationError) {
        let wait = LoopWait<Void>()
        let isSet = Mutex<SleepTimer?>(nil)
        if isCurrent {
            let timer = schedule(after: duration) { wait.resume(returning: ()) }
            isSet.withLock { $0 = SleepTimer(timer: timer) }
        } else {
            execute { self.schedule(after: duration) { wait.resume(returning: ()) } }
        }
        do throws(CancellationError) {
            try await wait.value()
        } catch {
            // Off the loop the timer is left to run out: it finds the wait over.
            if isCurrent { isSet.withLock { $0.take() }?.timer.cancel() }
            throw error
        }
    }
}

/// Carries a timer across a suspension.
// @unchecked Sendable: the timer is touched only under isCurrent, on its loop's thread.
private struct SleepTimer: @unchecked Sendable {
    let timer: LoopTimer
}
