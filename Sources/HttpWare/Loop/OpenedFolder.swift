import CSystemShims
import Glibc

/// An open folder beneath which files are found, but never outside it, whatever the path and its links say.
///
/// The kernel ensures that: openat2(2) with RESOLVE_BENEATH. Without that call, a path is walked component by component, and
/// links are followed here. An absolute link, or one that leads out of the folder, is treated as missing. Only regular files and folders
/// are opened, because opening a pipe or a device has side effects.
public final class OpenedFolder: Sendable {
    private let descriptor: Int32
    /// The folder's status when it was opened.
    public let status: FileStatus
    /// Whether the kernel lacks openat2.
    private let isStepwise: Bool

    /// The result of following a path.
    public enum Found: Sendable {
        case file(OpenedFile)
        /// The file with the known status.
        case unchanged
        case folder(OpenedFolder)
        /// The path leads to nothing, or to nothing that may be opened.
        case absent
        /// The process has no permission to read it.
        case forbidden
        /// The lookup would wait for the disk.
        case wouldWait
        /// The lookup failed, with this `errno`.
        case failed(Int32)
    }

    /// The kernel's features, tested once.
    private static let kernel: (looksBeneath: Bool, looksWithoutWaiting: Bool) = {
        let root = open("/", folderFlags)
        guard root >= 0 else { return (false, false) }
        defer { Glibc.close(root) }
        func isKnown(cached: Int32) -> Bool {
            let tried = csystem_open_beneath(root, ".", csystem_path_only() | O_CLOEXEC, cached)
            if tried >= 0 { Glibc.close(tried) }
            return tried >= 0 || errno == EAGAIN
        }
        return (isKnown(cached: 0), isKnown(cached: 1))
    }()

    private static let folderFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK
    private static let lookFlags = csystem_path_only() | O_CLOEXEC
    private static let fileFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
    /// How many times a lookup is repeated after a rename interrupted it.
    private static let mostTries = 16
    /// The maximum number of links in one path, as in Linux.
    private static let mostLinks = 40

    /// Opens a folder. Throws if it does not exist or is not readable.
    public convenience init(path: String) throws(SystemError) {
        try self.init(path: path, isStepwise: !OpenedFolder.kernel.looksBeneath)
    }

    init(path: String, isStepwise: Bool) throws(SystemError) {
        descriptor = open(path, OpenedFolder.folderFlags)
        guard descriptor >= 0 else { throw SystemError("open") }
        var status = Glibc.stat()
        guard fstat(descriptor, &status) == 0 else {
            let error = SystemError("fstat")
            Glibc.close(descriptor)
            throw error
        }
        self.status = FileStatus(status)
        self.isStepwise = isStepwise
    }

    private init(_ descriptor: Int32, _ status: FileStatus, isStepwise: Bool) {
        self.descriptor = descriptor
        self.status = status
        self.isStepwise = isStepwise
    }

    deinit { Glibc.close(descriptor) }

    // MARK: Finding

    /// Follows a relative path; `.` is the folder itself. With `waits` it may wait for the disk: not for use on loops. A file
    /// whose status equals `known` is not opened.
    public func find(_ path: [UInt8], waits: Bool, known: FileStatus? = nil) -> Found {
        guard let first = path.first, first != 0x2f, !path.contains(0) else { return .absent }
        if isStepwise { return waits ? findStepwise(path, known) : .wouldWait }
        guard waits || OpenedFolder.kernel.looksWithoutWaiting else { return .wouldWait }
        let path = path.map { CChar(bitPattern: $0) } + [0]
        let look = openBeneath(path, OpenedFolder.lookFlags, waits)
        guard look >= 0 else { return OpenedFolder.reason(-look, waits) }
        return take(look, known) { self.openBeneath(path, $0, waits) }
    }

    /// Opens a path; returns a descriptor, or the negative of an `errno`.
    private func openBeneath(_ path: [CChar], _ flags: Int32, _ waits: Bool) -> Int32 {
        var tries = 0
        while true {
            let opened = csystem_open_beneath(descriptor, path, flags, waits ? 0 : 1)
            if opened >= 0 { return opened }
            let code = errno
            tries += 1
            guard code == EINTR || code == EAGAIN && waits, tries < OpenedFolder.mostTries else { return -code }
        }
    }

    private static func reason(_ code: Int32, _ waits: Bool) -> Found {
        switch code {
        case EAGAIN where !waits: .wouldWait
        case ENOENT, ENOTDIR, ELOOP, EXDEV, ENAMETOOLONG, ENXIO, ENODEV, EINVAL, EOPNOTSUPP: .absent
        case EACCES, EPERM: .forbidden
        default: .failed(code)
        }
    }

    /// Opens the file or folder that a descriptor names. `reopen` opens the same path again, with the given flags.
    private func take(_ look: Int32, _ known: FileStatus?, reopen: (Int32) -> Int32) -> Found {
        defer { Glibc.close(look) }
        var status = Glibc.stat()
        guard fstat(look, &status) == 0 else { return .failed(errno) }
        let kind = status.st_mode & S_IFMT
        guard kind == S_IFREG || kind == S_IFDIR else { return .absent }
        if kind == S_IFREG, let known, known == FileStatus(status) { return .unchanged }
        let opened = reopen(kind == S_IFREG ? OpenedFolder.fileFlags : OpenedFolder.folderFlags)
        guard opened >= 0 else { return OpenedFolder.reason(-opened, false) }
        // Another file may be there by now; only the kind of the opened one matters.
        guard fstat(opened, &status) == 0, status.st_mode & S_IFMT == kind else {
            Glibc.close(opened)
            return .absent
        }
        return kind == S_IFREG
            ? .file(OpenedFile(opened, FileStatus(status)))
            : .folder(OpenedFolder(opened, FileStatus(status), isStepwise: isStepwise))
    }

    // MARK: Without openat2

    /// Walks the path. The folders on the way stay open, so that `..` leads back to the previous one.
    private func findStepwise(_ path: [UInt8], _ known: FileStatus?) -> Found {
        var folders: [Int32] = []
        defer { for folder in folders { Glibc.close(folder) } }
        var links = 0
        // The remaining components, the next one last.
        var left = Array(path.split(separator: 0x2f, omittingEmptySubsequences: true).map(Array.init).reversed())
        // A trailing slash requires a folder.
        var needsFolder = path.last == 0x2f
        while let name = left.popLast() {
            if name == [0x2e] { continue }
            if name == [0x2e, 0x2e] {
                guard let folder = folders.popLast() else { return .absent }
                Glibc.close(folder)
                continue
            }
            let place = folders.last ?? descriptor
            let text = name.map { CChar(bitPattern: $0) } + [0]
            let look = openat(place, text, OpenedFolder.lookFlags | csystem_no_follow())
            guard look >= 0 else { return OpenedFolder.reason(errno, true) }
            var status = Glibc.stat()
            guard fstat(look, &status) == 0 else {
                Glibc.close(look)
                return .failed(errno)
            }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: folders.append(look)
            case S_IFLNK:
                defer { Glibc.close(look) }
                links += 1
                guard links <= OpenedFolder.mostLinks, let target = OpenedFolder.target(of: look), target.first != 0x2f
                else { return .absent }
                if left.isEmpty, target.last == 0x2f { needsFolder = true }
                left += target.split(separator: 0x2f, omittingEmptySubsequences: true).map(Array.init).reversed()
            default:
                guard left.isEmpty, !needsFolder else {
                    Glibc.close(look)
                    return .absent
                }
                return take(look, known) { flags in
                    let opened = openat(place, text, flags | csystem_no_follow())
                    return opened >= 0 ? opened : -errno
                }
            }
        }
        let look = openat(folders.last ?? descriptor, ".", OpenedFolder.lookFlags)
        guard look >= 0 else { return OpenedFolder.reason(errno, true) }
        return take(look, nil) { flags in
            let opened = openat(folders.last ?? self.descriptor, ".", flags)
            return opened >= 0 ? opened : -errno
        }
    }

    /// The target of a link, from a descriptor of the link.
    private static func target(of link: Int32) -> [UInt8]? {
        let target = [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
            count = buffer.withMemoryRebound(to: CChar.self) { text in
                text.baseAddress.map { max(0, readlinkat(link, "", $0, text.count)) } ?? 0
            }
        }
        return target.isEmpty || target.count == 4096 ? nil : target
    }

    // MARK: Listing

    /// An entry of a folder.
    public struct Entry: Sendable {
        public let name: [UInt8]
        public let isFolder: Bool
        /// The size in bytes, and when it was last written; `nil` for a link, which may lead nowhere.
        public let size: Int64?
        public let modified: WallTime?
    }

    /// The files, folders and links in the folder whose names pass `isWanted`, at most `most`, and whether there are more. `nil` if the
    /// folder is not readable. Unordered. Waits for the disk: not for use on loops.
    public func entries(atMost most: Int, where isWanted: ([UInt8]) -> Bool) -> (entries: [Entry], isCut: Bool)? {
        let copy = openat(descriptor, ".", OpenedFolder.folderFlags)
        guard copy >= 0, let stream = fdopendir(copy) else {
            if copy >= 0 { Glibc.close(copy) }
            return nil
        }
        defer { closedir(stream) }
        var entries: [Entry] = []
        while let next = readdir(stream) {
            let name = withUnsafeBytes(of: &next.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            guard name != [0x2e], name != [0x2e, 0x2e], isWanted(name) else { continue }
            guard entries.count < most else { return (entries, true) }
            var status = Glibc.stat()
            let text = name.map { CChar(bitPattern: $0) } + [0]
            guard fstatat(descriptor, text, &status, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            let kind = status.st_mode & S_IFMT
            guard kind == S_IFREG || kind == S_IFDIR || kind == S_IFLNK else { continue }
            let known = kind == S_IFLNK ? nil : FileStatus(status)
            entries.append(
                Entry(
                    name: name, isFolder: kind == S_IFDIR, size: kind == S_IFREG ? known?.size : nil,
                    modified: known?.modified))
        }
        return (entries, false)
    }
}
