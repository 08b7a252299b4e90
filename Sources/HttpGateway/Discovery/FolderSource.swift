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

    /// The time from the first change until the files are read, so that several changes at once are read once.
    private static let pause = Duration.milliseconds(20)
    /// A folder that is not there, or is on a file system without events, is looked at this often.
    private static let interval = Duration.seconds(5)
    private static let mostFiles = 1000
    private static let largestFile = 256 << 10

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
        switch FolderSource.read(path) {
        case .success(let instances):
            if instances != last {
                last = instances
                found?(instances)
            }
        case .failure(let error): failed?(error.description)
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

    /// The services in the folder; a missing folder is an error.
    static func read(_ path: String) -> Result<[FoundInstance], SystemError> {
        guard let folder = opendir(path) else { return .failure(SystemError("opendir \(path)")) }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder), names.count < mostFiles {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix("."), name.hasSuffix(".yaml") || name.hasSuffix(".yml") { names.append(name) }
        }
        let instances = names.sorted().compactMap { name -> FoundInstance? in
            let file = FilePath.joined(path, name)
            // Between the list and now, a file may have gone.
            guard let content = try? ConfigurationFiles.system.read(file, largestFile) else { return nil }
            let service = name.prefix { $0 != "." }
            return FoundInstance(file: file, service: String(service), content: content)
        }
        return .success(instances)
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
