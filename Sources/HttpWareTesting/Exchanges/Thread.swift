import Glibc

/// A system thread, for work beside a test.
enum Thread {
    /// Runs the body on a detached thread.
    static func start(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Body(body))  // released by threadBody(_:)
        var thread = pthread_t()
        guard pthread_create(&thread, nil, threadBody, box.toOpaque()) == 0 else {
            box.release()
            // No input can cause this: a test that starts a thread has run out of threads, and cannot continue.
            preconditionFailure("a thread cannot be created")
        }
        pthread_detach(thread)
    }

    fileprivate final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}

// Outside any isolated context: inside one, the thread would check its isolation at run time and trap.
private func threadBody(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    Unmanaged<Thread.Body>.fromOpaque(argument).takeRetainedValue().run()  // retained by start(_:)
    return nil
}
