import Glibc

/// A system thread beside the loops: for commands and tests. It inherits the signal mask of the thread that starts it.
package enum DetachedThread {
    /// Runs the body on a new thread.
    package static func start(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Body(body))  // released by threadBody(_:)
        var thread = pthread_t()
        guard pthread_create(&thread, nil, threadBody, box.toOpaque()) == 0 else {
            box.release()
            // No input can cause this: a command or test starts few threads, and cannot continue without them.
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
    Unmanaged<DetachedThread.Body>.fromOpaque(argument).takeRetainedValue().run()  // retained by start(_:)
    return nil
}
