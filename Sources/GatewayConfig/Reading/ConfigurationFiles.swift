import Glibc
import HttpWare

/// The source of files: the files of the system or, in a test, texts in memory.
public struct ConfigurationFiles: Sendable {
    /// Why a file cannot be read, as the text of an error.
    public struct Fault: Error, Sendable, Equatable {
        /// The reason, such as `no such file or directory`.
        public var reason: String
        /// Whether the file does not exist, as opposed to a file that cannot be read.
        public var isAbsent: Bool
        /// Whether the machine failed to supply the file, whatever its content.
        public var isOfSystem: Bool

        /// Makes a fault with a reason.
        public init(_ reason: String, isAbsent: Bool = false, isOfSystem: Bool = false) {
            self.reason = reason
            self.isAbsent = isAbsent
            self.isOfSystem = isOfSystem
        }
    }

    /// Reads a file of at most `limit` bytes; a longer file is a fault. `-` is standard input.
    public var read: @Sendable (_ path: String, _ limit: Int) throws(Fault) -> [UInt8]
    /// The paths that match a pattern with `*`, `?` or `[…]`, in name order.
    public var list: @Sendable (_ pattern: String) -> [String]
    /// Whether every user of this machine can read or write the file.
    public var isOpenToAll: @Sendable (_ path: String) -> Bool

    /// Whether the options of wares may name other files of this machine, and its environment.
    public var isOfMachine: Bool

    /// Makes a source from two functions.
    public init(
        read: @escaping @Sendable (_ path: String, _ limit: Int) throws(Fault) -> [UInt8],
        list: @escaping @Sendable (_ pattern: String) -> [String],
        isOpenToAll: @escaping @Sendable (_ path: String) -> Bool = { _ in false }, isOfMachine: Bool = true
    ) {
        self.isOfMachine = isOfMachine
        self.read = read
        self.list = list
        self.isOpenToAll = isOpenToAll
    }

    /// The files of this machine.
    public static let system = ConfigurationFiles(
        read: readSystem, list: listSystem, isOpenToAll: FileStatus.isOpenToAll)

    /// The maximum silence of a pipe, in milliseconds, so that a pipe without a writer cannot block a reload forever.
    private static let patience: CInt = 5000

    private static func readSystem(_ path: String, _ limit: Int) throws(Fault) -> [UInt8] {
        guard !path.utf8.contains(0) else { throw Fault("a path cannot contain NUL") }
        let isInput = path == "-"
        let descriptor =
            isInput ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw fault(errno, isInput: isInput) }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            // Standard input may be typed by a person, so it has no time limit.
            var ready = pollfd(fd: descriptor, events: CShort(POLLIN), revents: 0)
            if !isInput, poll(&ready, 1, patience) == 0 {
                throw Fault("is a pipe without a writer", isOfSystem: true)
            }
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0 {
                if errno == EINTR || errno == EAGAIN && !isInput { continue }
                throw fault(errno, isInput: isInput)
            }
            if count == 0 { return content }
            content += buffer[..<count]
            if content.count > limit { throw Fault("is larger than \(limit >> 10) KiB") }
        }
    }

    private static func fault(_ code: CInt, isInput: Bool = false) -> Fault {
        let reason = isInput && code == EBADF ? "standard input is closed" : SystemError.text(of: code).lowercased()
        return Fault(reason, isAbsent: code == ENOENT, isOfSystem: true)
    }

    private static func listSystem(_ pattern: String) -> [String] {
        guard !pattern.utf8.contains(0) else { return [] }
        var result = glob_t()
        defer { globfree(&result) }
        guard glob(pattern, 0, nil, &result) == 0, let paths = result.gl_pathv else { return [] }
        return (0..<Int(result.gl_pathc)).compactMap { paths[$0].map { String(cString: $0) } }.sorted()
    }
}
