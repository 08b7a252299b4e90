import Glibc
import HttpWare

/// The downloads of this process, by path: one writes, and others wait for it. Guarded by a lock.
final class DownloadTurns: Sendable {
    static let shared = DownloadTurns()

    /// A download that is under way.
    final class Turn: Sendable {
        let key: String
        let identity: String?
        private let readers: ThreadLock<[@Sendable (TransferProgress) -> Void]>

        fileprivate init(_ key: String, _ identity: String?, _ progress: (@Sendable (TransferProgress) -> Void)?) {
            self.key = key
            self.identity = identity
            readers = ThreadLock(progress.map { [$0] } ?? [])
        }

        fileprivate func add(_ progress: (@Sendable (TransferProgress) -> Void)?) {
            if let progress { readers.withLock { $0.append(progress) } }
        }

        /// Reports the progress to all calls that wait for the file.
        func report(_ progress: TransferProgress) {
            for reader in readers.withLock({ $0 }) { reader(progress) }
        }
    }

    /// The turn of a call.
    enum Entry: Sendable {
        /// It downloads the file, and calls `end` afterwards.
        case begins(Turn)
        /// A download of the same request has just brought the file.
        case joined(Download)
    }

    private struct Waiting {
        let identity: String?
        let progress: (@Sendable (TransferProgress) -> Void)?
        let wait: LoopWait<Entry>
    }

    private struct State {
        var running: [String: Turn] = [:]
        var waiting: [String: [Waiting]] = [:]
    }

    private let state = ThreadLock(State())

    /// Waits until the call may download to the path, or until a download with the same identity has brought the file. With `nil`
    /// the call joins no other. Throws `CancellationError` if the task is cancelled.
    func take(
        _ path: String, identity: String?, _ progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws -> Entry {
        let key = DownloadTurns.key(of: path)
        let wait = LoopWait<Entry>()
        let begun = state.withLock { state -> Turn? in
            if let running = state.running[key] {
                if identity != nil, running.identity == identity { running.add(progress) }
                state.waiting[key, default: []].append(Waiting(identity: identity, progress: progress, wait: wait))
                return nil
            }
            let turn = Turn(key, identity, progress)
            state.running[key] = turn
            return turn
        }
        if let begun { return .begins(begun) }
        return try await wait.value()
    }

    /// Ends the turn: calls that wait for the same file get it, and the next of the others has its turn. `nil` is a download that failed.
    func end(_ turn: Turn, with file: Download?) {
        let joined = state.withLock { state -> [LoopWait<Entry>] in
            var all = state.waiting.removeValue(forKey: turn.key) ?? []
            var joined: [LoopWait<Entry>] = []
            if file != nil {
                joined = all.filter { $0.identity != nil && $0.identity == turn.identity }.map(\.wait)
                all.removeAll { $0.identity != nil && $0.identity == turn.identity }
            }
            state.running[turn.key] = nil
            while let first = all.first {
                all.removeFirst()
                let following = Turn(turn.key, first.identity, first.progress)
                // A call whose task was cancelled takes no turn.
                guard first.wait.resume(returning: .begins(following)) else { continue }
                for other in all where other.identity != nil && other.identity == following.identity {
                    following.add(other.progress)
                }
                state.running[turn.key] = following
                break
            }
            if !all.isEmpty { state.waiting[turn.key] = all }
            return joined
        }
        guard let file else { return }
        for wait in joined { wait.resume(returning: .joined(file)) }
    }

    /// The path without links in its folders, so that each file has one key.
    private static func key(of path: String) -> String {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { String(path[...$0]) } ?? "."
        let name = slash.map { path[path.index(after: $0)...] } ?? path[...]
        guard let real = realpath(folder, nil) else { return path }
        defer { free(real) }
        return "\(String(cString: real))/\(name)"
    }
}
