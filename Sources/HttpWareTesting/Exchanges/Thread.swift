import Glibc

/// A thread of the system, for what a test runs beside itself.
enum Thread {
    /// Runs the body on a thread of its own, which nobody joins.
    static func start(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Body(body))  // released by threadBody(_:)
        var thread = pthread_t()
        guard pthread_create(&thread, nil, threadBody, box.toOpaque()) == 0 else {
            box.release()
            // No input, file or peer comes here: a test that starts a thread runs out of threads, and cannot go on.
            preconditionFailure("a thread cannot be created")
        }
        pthread_detach(thread)
    }

    fileprivate final class Body: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }
}

// Outside of any isolated context: inside one the thread would check for it at run time and trap.
private func threadBody(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let argument else { return nil }
    Unmanaged<Thread.Body>.fromOpaque(argument).takeRetainedValue().run()  // retained by start(_:)
    return nil
}
