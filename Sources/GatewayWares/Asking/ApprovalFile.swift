import Glibc
public import HttpWare
import Synchronization
import Wares

/// An answer of a person that counts until it is taken back.
public struct Approval: Sendable, Equatable {
    /// The digest of what it is bound to.
    public let key: Digest256
    public let isYes: Bool
    /// The facts for people: the principal or address, the method and the URL or host, and the time.
    public let who: String, what: String, at: String

    /// The most bytes of the method and URL that a line shows.
    private static let mostShown = 512

    /// The first eight digits of the digest, by which people name it.
    public var id: String { String(key.hex.prefix(8)) }

    init(_ subject: Question.Subject, isYes: Bool, at wall: WallTime) {
        key = subject.key
        self.isYes = isYes
        who = subject.who
        let whole = subject.scope == .host ? subject.host : "\(subject.method) \(subject.url)"
        let isLong = whole.utf8.count > Approval.mostShown
        what = isLong ? String(decoding: whole.utf8.prefix(Approval.mostShown), as: UTF8.self) + Redaction.mark : whole
        at = wall.rfc3339
    }

    /// Reads the members of a line. Throws a sentence.
    init(_ json: JsonValue) throws(ApprovalFile.Mistake.Reason) {
        guard let members = json.members else { throw .init("is not { answer, who, what, at, hash }") }
        func text(_ name: String) throws(ApprovalFile.Mistake.Reason) -> String {
            guard let text = json[name]?.string else { throw .init("has no \(name)") }
            return text
        }
        if let other = members.first(where: { !["answer", "who", "what", "at", "hash"].contains($0.name) }) {
            throw .init("has a member \(other.name.quotedForErrors), which is unknown")
        }
        guard let key = Digest256(hex: Array(try text("hash").utf8)) else {
            throw .init("has a hash that is not 64 hexadecimal digits")
        }
        switch try text("answer") {
        case "yes": isYes = true
        case "no": isYes = false
        default: throw .init("has an answer that is not yes or no")
        }
        self.key = key
        (who, what, at) = (try text("who"), try text("what"), try text("at"))
    }

    /// The line in the file.
    var line: String {
        let json = Json.object([
            ("answer", .text(isYes ? "yes" : "no")), ("who", .text(who)), ("what", .text(what)), ("at", .text(at)),
            ("hash", .text(key.hex)),
        ])
        return "- \(json.text)\n"
    }
}

/// The answers that count until they are taken back, in a small file of YAML with one line for each. Safe to use from any thread.
///
/// Lines may be removed with an editor: the file is looked at again at most once a second. While it has a mistake, no answer in it counts.
public final class ApprovalFile: Sendable {
    /// A mistake in a file.
    public struct Mistake: Error, CustomStringConvertible {
        /// The line, from 1.
        public let line: Int
        let reason: String

        public var description: String { "line \(line) \(reason)" }

        struct Reason: Error, CustomStringConvertible {
            let text: String

            var description: String { text }

            init(_ text: String) { self.text = text }
        }
    }

    private struct State {
        var approvals: [Digest256: Approval] = [:]
        var stamp: Stamp?
        var looked: LoopInstant?
        var problem: String?
    }

    /// The facts by which a changed file is known.
    private struct Stamp: Equatable {
        let inode: UInt, size: Int, seconds: Int, nanoseconds: Int

        init?(_ path: String) {
            var status = Glibc.stat()
            guard stat(path, &status) == 0 else { return nil }
            inode = status.st_ino
            size = Int(status.st_size)
            seconds = status.st_mtim.tv_sec
            nanoseconds = status.st_mtim.tv_nsec
        }
    }

    public let path: String
    private let state = Mutex(State())

    /// The most bytes and lines of a file.
    package static let mostBytes = 4 << 20
    package static let mostLines = 20_000
    private static let files = Mutex<[String: ApprovalFile]>([:])

    private init(_ path: String) { self.path = path }

    /// The file at a path: one object for all who name it.
    static func at(_ path: String) -> ApprovalFile {
        files.withLock { files in
            if let file = files[path] { return file }
            let file = ApprovalFile(path)
            files[path] = file
            return file
        }
    }

    /// The files that wares of this process use, in the order of their paths.
    public static var all: [ApprovalFile] {
        files.withLock { files in files.values.sorted { $0.path < $1.path } }
    }

    // MARK: Reading

    /// Reads the lines of a file.
    package static func read(_ bytes: [UInt8]) throws(Mistake) -> [Approval] {
        guard bytes.count <= mostBytes else { throw Mistake(line: 1, reason: "begins a file of more than 4 MiB") }
        var approvals: [Approval] = []
        for (index, line) in bytes.split(separator: 0x0a, omittingEmptySubsequences: false).enumerated() {
            let text = line.drop { $0 == 0x20 || $0 == 0x09 }
            if text.isEmpty || text.first == 0x23 { continue }
            guard index < mostLines else { throw Mistake(line: index + 1, reason: "is one of more than 20,000") }
            guard line.starts(with: [0x2d, 0x20]), let json = try? JsonValue(Array(line.dropFirst(2))) else {
                throw Mistake(line: index + 1, reason: "is not such as - {\"answer\": \"yes\", …}, on one line")
            }
            do {
                approvals.append(try Approval(json))
            } catch {
                throw Mistake(line: index + 1, reason: error.text)
            }
        }
        return approvals
    }

    /// The answer for a digest; `nil` without one. Looks at the file at most once a second, which blocks for microseconds.
    func answer(to key: Digest256, at now: LoopInstant) -> Bool? {
        state.withLock { state in
            if state.looked.map({ now - $0 >= .seconds(1) }) ?? true {
                state.looked = now
                load(&state)
            }
            return state.approvals[key]?.isYes
        }
    }

    /// The answers, the oldest first. Reads the file, which blocks.
    public var approvals: [Approval] {
        state.withLock { state in
            load(&state)
            return state.approvals.values.sorted { ($0.at, $0.id) < ($1.at, $1.id) }
        }
    }

    /// Reads the file if it has changed.
    private func load(_ state: inout State) {
        let stamp = Stamp(path)
        guard stamp != state.stamp || stamp == nil else { return }
        state.stamp = stamp
        state.approvals = [:]
        guard stamp != nil else {
            state.problem = nil
            return
        }
        do {
            let approvals = try Self.read(try Self.content(of: path))
            state.approvals = Dictionary(approvals.map { ($0.key, $0) }, uniquingKeysWith: { _, last in last })
            state.problem = nil
        } catch {
            let problem = "\(error)"
            if state.problem != problem {
                WareLog.shared.log(.error, "ask: \(path.quotedForErrors): \(problem); its approvals do not count")
            }
            state.problem = problem
        }
    }

    /// The content of the file. Throws if other users than its owner, this user or root, may write it, or if it is a link.
    static func content(of path: String) throws -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw SystemError("open") }
        defer { close(descriptor) }
        var status = Glibc.stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemError("stat") }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() || status.st_uid == 0,
            status.st_mode & 0o022 == 0
        else { throw Mistake.Reason("it is not a file that only this user may write") }
        return try PrivateFile.content(descriptor, upTo: mostBytes)
    }

    /// Why the answers of an existing file would not count; `nil` if they would, or without a file. Blocks.
    static func problem(of path: String) -> String? {
        guard access(path, F_OK) == 0 else { return nil }
        do {
            _ = try read(try content(of: path))
            return nil
        } catch {
            return "\(error)"
        }
    }

    // MARK: Writing

    /// Adds an answer, and replaces an earlier one to the same. Blocks.
    func add(_ approval: Approval) throws(SystemError) {
        try change { approvals in
            approvals.removeAll { $0.key == approval.key }
            approvals.append(approval)
            return true
        }
    }

    /// Removes the answers whose digest begins with these digits. Returns how many. Blocks.
    public func remove(_ id: String) throws(SystemError) -> Int {
        var count = 0
        try change { approvals in
            let before = approvals.count
            approvals.removeAll { $0.key.hex.hasPrefix(id) }
            count = before - approvals.count
            return count > 0
        }
        return count
    }

    private func change(_ edit: (inout [Approval]) -> Bool) throws(SystemError) {
        if OutputGate.isClosed { return }
        try state.withLock { state throws(SystemError) in
            state.stamp = nil
            load(&state)
            // A file with a mistake is not written over.
            if state.problem != nil { throw SystemError("read", code: EINVAL) }
            var approvals = state.approvals.values.sorted { ($0.at, $0.id) < ($1.at, $1.id) }
            guard edit(&approvals) else { return }
            let text = Self.head + approvals.map(\.line).joined()
            guard text.utf8.count <= Self.mostBytes, approvals.count < Self.mostLines - 8 else {
                throw SystemError("write", code: EFBIG)
            }
            try PrivateFile.write(Array(text.utf8), to: path)
            state.approvals = Dictionary(approvals.map { ($0.key, $0) }, uniquingKeysWith: { _, last in last })
            state.stamp = Stamp(path)
        }
    }

    private static let head = """
        # Answers to questions of the ware ask that count until they are taken back.
        # To take one back, remove its line, or run: \(ProgramName.text) approve rm HASH

        """
}
