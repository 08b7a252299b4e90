import Glibc
import HttpWare

/// The system's numbers about this process.
struct ProcessNumbers {
    var residentBytes = 0
    var virtualBytes = 0
    var openDescriptors = 0
    var mostDescriptors = 0
    var cpuSeconds = 0.0
    /// The start time of the process, in seconds since 1970.
    var startSeconds = 0.0
    var threads = 0

    init() {
        let pages = ProcessNumbers.read("/proc/self/statm").split(separator: " ").compactMap { Int($0) }
        let pageSize = sysconf(Int32(_SC_PAGESIZE))
        if pages.count >= 2 { (virtualBytes, residentBytes) = (pages[0] * pageSize, pages[1] * pageSize) }
        mostDescriptors = Socket.mostDescriptors ?? 0
        openDescriptors = ProcessNumbers.countDescriptors()
        // POSIX: one second has a million of these units.
        cpuSeconds = Double(max(0, clock())) / 1e6
        // Begins after the name in parentheses, which may contain any characters.
        let stat = ProcessNumbers.read("/proc/self/stat")
        let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
        if fields.count > 20 {
            threads = Int(fields[18]) ?? 0
            startSeconds = ProcessNumbers.bootSeconds + (Double(fields[20]) ?? 0) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
    }

    /// When the machine started, in seconds since 1970.
    private static var bootSeconds: Double {
        for line in read("/proc/stat").split(separator: "\n") where line.hasPrefix("btime ") {
            return Double(line.dropFirst(6)) ?? 0
        }
        return 0
    }

    private static func countDescriptors() -> Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        // Without `.`, `..` and the directory itself.
        return max(0, count - 3)
    }

    private static func read(_ path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while content.count < 1 << 20 {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { break }
            content += buffer[..<count]
        }
        return String(decoding: content, as: UTF8.self)
    }
}
