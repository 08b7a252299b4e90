import GatewayConfig
import Glibc
import HttpWare

/// The state of some files at one time: enough to detect changes without reading the files.
struct FileLook {
    /// The identity of a file's content. A missing file, and one that was not read in time, differ from any content.
    private enum State: Equatable {
        case seen(FileStatus)
        case absent, unsure
    }

    let paths: [String]
    let patterns: [String]
    /// The directories in which a change of the files is visible.
    let directories: Set<String>
    private let time: WallTime
    private var states: [String: State] = [:]
    private var matches: [String: [String]] = [:]

    /// Looks at these files.
    init(paths: [String] = [], patterns: [String] = []) {
        self.paths = paths
        self.patterns = patterns
        time = SystemLoopClock().wallNow()
        for path in paths { states[path] = FileLook.state(of: path) }
        for pattern in patterns { matches[pattern] = ConfigurationFiles.system.list(pattern) }
        var directories: Set<String> = []
        for path in paths { directories.formUnion(FileLook.directories(of: path)) }
        for pattern in patterns { directories.formUnion(FileLook.directories(ofPattern: pattern)) }
        self.directories = directories
    }

    /// This state, limited to what is certain about files that were read after `before` was taken. Files that existed before
    /// count with their former state. New files count only if they are older than `before`.
    func asRead(after before: FileLook) -> FileLook {
        var result = self
        for (path, state) in states {
            if let former = before.states[path] {
                result.states[path] = former
            } else if case .seen(let status) = state, before.time < status.changed + FileLook.clockStep {
                result.states[path] = .unsure
            }
        }
        for (pattern, found) in matches {
            result.matches[pattern] = before.matches[pattern] ?? found.filter(Set(paths).contains)
        }
        return result
    }

    /// The time since the last change of the files that differ from `other`; `nil` if none differs, or if it is not
    /// known.
    func age(ofChangesSince other: FileLook) -> Duration? {
        states.filter { other.states[$0.key] != $0.value }.compactMap { entry in
            if case .seen(let status) = entry.value { time - status.changed } else { nil }
        }.min()
    }

    /// The resolution of the timestamps of files.
    private static let clockStep = Duration.milliseconds(10)

    private static func state(of path: String) -> State {
        FileStatus(path: path).map { .seen($0) } ?? .absent
    }

    // MARK: Directories

    /// The directory of a file, and the directories of the symbolic links on the way to it. If the path ends early, the last
    /// existing directory.
    private static func directories(of path: String) -> Set<String> {
        var found: Set<String> = []
        var here = path.hasPrefix("/") ? "/" : "."
        var left = Array(path.split(separator: "/").reversed())
        var links = 0
        while let name = left.popLast() {
            let next = here == "/" ? "/\(name)" : "\(here)/\(name)"
            var status = stat()
            guard lstat(next, &status) == 0 else {
                found.insert(here)
                break
            }
            if left.isEmpty { found.insert(here) }
            if status.st_mode & S_IFMT == S_IFLNK, links < 40, let target = target(ofLink: next) {
                links += 1
                found.insert(here)
                if target.hasPrefix("/") { here = "/" }
                left += target.split(separator: "/").reversed()
            } else {
                here = next
            }
        }
        return found
    }

    /// The directories in which a new file or directory could match the pattern.
    private static func directories(ofPattern pattern: String) -> Set<String> {
        var found: Set<String> = []
        let parts = pattern.split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in parts.enumerated() where part.contains(where: { "*?[".contains($0) }) {
            let parent = parts[..<index].joined(separator: "/")
            let path = index == 0 ? "." : parent.isEmpty ? "/" : parent
            // Includes the named directory, even if it does not exist yet.
            for directory in [path] + ConfigurationFiles.system.list(path) {
                found.formUnion(directories(of: directory + "/."))
            }
        }
        return found
    }

    private static func target(ofLink path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }
}

extension FileLook: Equatable {
    /// Whether the files and the matches are the same.
    static func == (left: FileLook, right: FileLook) -> Bool {
        left.states == right.states && left.matches == right.matches
    }
}
