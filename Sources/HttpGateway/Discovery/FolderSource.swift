import GatewayConfig
import Glibc
import HttpWare

/// A folder of service files: each `NAME.yaml` is one service. The folder is watched; files are read soon after a change.
///
/// A file should be written under another name, such as `.orders.tmp`, and renamed: then no half of it is ever read.
final class FolderSource: ServiceSource {
    let name = "folder"
    private let path: String
    private let loop: EventLoop
    private var events: SocketEvents?
    private var timer: LoopTimer?
    private var found: (([FoundInstance]) -> Void)?
    private var failed: ((String) -> Void)?
    private var last: [FoundInstance]?
    private var isDirty = false
    private var known: [String: Known] = [:]

    /// The time from the first change until the files are read, so that several changes at once are read once.
    private static let pause = Duration.milliseconds(20)
    /// A folder that is not there, or is on a file system without events, is looked at this often.
    private static let interval = Duration.seconds(5)
    private static let mostFiles = 1000
    private static let largestFile = 64 << 10

    init(_ path: String, loop: EventLoop) {
        self.path = path
        self.loop = loop
    }

    func start(found: @escaping ([FoundInstance]) -> Void, failed: @escaping (String) -> Void) {
        self.found = found
        self.failed = failed
        look()
    }

    func stop() {
        found = nil
        failed = nil
        timer?.cancel()
        events?.close()
        events = nil
    }

    /// Reads the folder, and waits for its next change.
    private func look() {
        guard found != nil else { return }
        watch()
        isDirty = false
        switch read() {
        case .success(let instances):
            if instances != last {
                last = instances
                found?(instances)
            }
        case .failure(let error):
            last = nil
            failed?(error.description)
        }
        timer?.cancel()
        timer = loop.schedule(after: FolderSource.interval) { [weak self] in self?.look() }
    }

    private func watch() {
        guard events == nil else { return }
        let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        guard descriptor >= 0 else { return }
        let kinds = UInt32(
            IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF)
        guard inotify_add_watch(descriptor, path, kinds) >= 0 else {
            Socket.close(descriptor)
            return
        }
        let events = SocketEvents(loop: loop, descriptor: descriptor)
        events.handler = self
        events.enableReading()
        self.events = events
    }

    /// The services in the folder; a missing folder is an error. Files that did not change since they were read are not read again.
    private func read() -> Result<[FoundInstance], SystemError> {
        guard let folder = opendir(path) else { return .failure(SystemError("opendir \(path)")) }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder), names.count < FolderSource.mostFiles {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix("."), name.hasSuffix(".yaml") || name.hasSuffix(".yml") { names.append(name) }
        }
        var kept: [String: Known] = [:]
        for name in names { kept[name] = file(name) }
        known = kept
        return .success(names.sorted().compactMap { kept[$0]?.instance })
    }

    /// A file that was read, and its state at that time.
    private struct Known {
        let status: FileStatus?
        let instance: FoundInstance
    }

    /// The service of one file; `nil` if the file has gone meanwhile. If a file that was read cannot be read any more, its service stays.
    private func file(_ name: String) -> Known? {
        let place = FilePath.joined(path, name)
        let service = String(name.prefix { $0 != "." })
        guard service.utf8.allSatisfy(FolderSource.isOfName) else {
            return Known(
                status: nil,
                instance: FoundInstance(
                    file: FilePath.joined(path, "\(FolderSource.escaped(name))"), service: "service",
                    unreadable: "the name of a service file has letters, digits, - and _ before .yaml"))
        }
        let status = FileStatus(path: place)
        if let status, let former = known[name], former.status == status { return former }
        switch FolderSource.content(of: place) {
        case .success(let content):
            return Known(status: status, instance: FoundInstance(file: place, service: service, content: content))
        case .failure(let fault) where fault.isAbsent: return nil
        case .failure(let fault):
            let failed = FoundInstance(file: place, service: service, unreadable: fault.reason)
            return known[name].map { Known(status: nil, instance: $0.instance) } ?? Known(status: nil, instance: failed)
        }
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }

    private static func escaped(_ name: String) -> String {
        String(
            decoding: name.utf8.map { isOfName($0) || $0 == UInt8(ascii: ".") ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
    }

    /// The content of a regular file. Nothing else is opened for longer than it takes to see that: a pipe could be silent for ever.
    private static func content(of path: String) -> Result<[UInt8], ConfigurationFiles.Fault> {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            return .failure(.init(SystemError.text(of: errno).lowercased(), isAbsent: errno == ENOENT))
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return .failure(.init("is not a regular file"))
        }
        guard status.st_size <= largestFile else {
            return .failure(.init("is larger than \(largestFile >> 10) KiB"))
        }
        var content = [UInt8](repeating: 0, count: largestFile + 1)
        var count = 0
        while count < content.count {
            let more = content[count...].withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if more < 0, errno == EINTR { continue }
            guard more > 0 else { break }
            count += more
        }
        guard count <= largestFile else { return .failure(.init("is larger than \(largestFile >> 10) KiB")) }
        return .success(Array(content[..<count]))
    }
}

extension FolderSource: SocketEventHandler {
    func socketReadable() {
        guard let events else { return }
        var bytes = [UInt8](repeating: 0, count: 16 << 10)
        var isGone = false
        while true {
            let count = bytes.withUnsafeMutableBytes { Glibc.read(events.descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { break }
            isGone = isGone || FolderSource.endsWatch(bytes[..<count])
        }
        if isGone {
            events.close()
            self.events = nil
        }
        guard !isDirty else { return }
        isDirty = true
        timer?.cancel()
        timer = loop.schedule(after: FolderSource.pause) { [weak self] in self?.look() }
    }

    func socketWritable() {}

    /// Whether one of these events says that the folder itself was removed or renamed.
    private static func endsWatch(_ events: ArraySlice<UInt8>) -> Bool {
        var rest = events
        let head = MemoryLayout<inotify_event>.size
        while rest.count >= head {
            let event = rest.withUnsafeBytes { $0.loadUnaligned(as: inotify_event.self) }
            if event.mask & UInt32(IN_IGNORED | IN_MOVE_SELF) != 0 { return true }
            rest = rest.dropFirst(head + Int(event.len))
        }
        return false
    }
}
