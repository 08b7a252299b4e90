import Glibc
import HttpWare

/// Reports changes of a configuration's files: the files that were read, and new files that match its patterns.
///
/// inotify watches directories, not files. So it notices a new file that an editor writes and then renames, and a file that did
/// not exist. It also notices a symbolic link on the way that changes its target. Events are not interpreted: they only make the
/// watcher check the files. So other files in a directory, such as a log, only cost a check. Used on its loop's thread only.
final class FileWatcher: SocketEventHandler, LoopTimerHandler {
    private let socket: SocketEvents
    private let timer: LoopTimer
    private let changed: () -> Void
    private let reports: (String) -> Void
    private var seen = FileLook()
    private var watches: Set<Int32> = []
    private var firstEvent: LoopInstant?

    /// A file is written in several steps and may be incomplete. It is read after this time without a change, or at the
    /// latest after `mostPatience`.
    private static let quiet = Duration.milliseconds(200)
    private static let mostPatience = Duration.seconds(1)
    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF
    )

    /// Makes a watcher that does not watch anything yet. `changed` is called when a check finds a change; `reports` is called
    /// with errors.
    init(loop: EventLoop, changed: @escaping () -> Void, reports: @escaping (String) -> Void) throws(SystemError) {
        let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError("inotify_init1") }
        self.changed = changed
        self.reports = reports
        socket = SocketEvents(loop: loop, descriptor: descriptor)
        timer = LoopTimer(loop: loop)
        socket.handler = self
        timer.handler = self
        socket.enableReading()
    }

    /// The current state of the watched files. Must be taken before they are read.
    func look() -> FileLook { FileLook(paths: seen.paths, patterns: seen.patterns) }

    /// Watches these files from now on. They were read after `before` was taken, so later changes are found, too.
    func watch(paths: [String], patterns: [String], readAfter before: FileLook) {
        let now = FileLook(paths: paths, patterns: patterns)
        seen = now.asRead(after: before)
        var wanted: Set<Int32> = []
        for directory in now.directories {
            let watch = inotify_add_watch(socket.descriptor, directory, FileWatcher.events)
            if watch >= 0 {
                wanted.insert(watch)
            } else if errno != ENOENT && errno != ENOTDIR {
                reports("changes in \(directory) cannot be watched: \(SystemError.text(of: errno))")
            }
        }
        for watch in watches.subtracting(wanted) { inotify_rm_watch(socket.descriptor, watch) }
        watches = wanted
        if seen != now { lookSoon() }
    }

    /// Whether the files were changed while they were read, and are going to be read again.
    var isBehind: Bool { firstEvent != nil && look() != seen }

    /// Stops watching.
    func close() {
        timer.cancel()
        socket.close()
    }

    func socketReadable() {
        var events = [UInt8](repeating: 0, count: 16 << 10)
        while events.withUnsafeMutableBytes({ read(socket.descriptor, $0.baseAddress, $0.count) }) > 0 {}
        lookSoon()
    }

    func socketWritable() {}

    private func lookSoon() {
        let now = timer.loop.now
        let first = firstEvent ?? now
        firstEvent = first
        timer.set(due: min(now + FileWatcher.quiet, first + FileWatcher.mostPatience))
    }

    func timerFired(_ timer: LoopTimer) {
        let now = look()
        // A file that is still being written shows nothing until it is closed.
        if let first = firstEvent, let age = now.age(ofChangesSince: seen), age >= .zero, age < FileWatcher.quiet {
            let due = min(timer.loop.now + (FileWatcher.quiet - age), first + FileWatcher.mostPatience)
            if due > timer.loop.now { return timer.set(due: due) }
        }
        firstEvent = nil
        if now != seen {
            changed()
        } else if now.directories != seen.directories {
            // The files are the same, but the path to them has changed.
            watch(paths: now.paths, patterns: now.patterns, readAfter: now)
        }
    }
}
