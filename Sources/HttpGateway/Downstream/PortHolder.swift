import Glibc
import HttpWare

/// Finds the process that listens on a port, for an error message. Reads `/proc`, which shows the processes of other users only
/// to root.
enum PortHolder {
    /// Why an address cannot be listened on, with the process that has it.
    static func reason(_ error: any Error, _ address: SocketAddress) -> String {
        guard (error as? SystemError)?.code == EADDRINUSE, let port = address.port, let holder = find(port) else {
            return "\(error)"
        }
        return "\(error); \(holder) listens there"
    }

    /// The process, such as `nginx (process 1234)`.
    static func find(_ port: UInt16) -> String? {
        let sockets = Set(["/proc/net/tcp", "/proc/net/tcp6"].flatMap { inodes(lines: lines(of: $0), port) })
        guard !sockets.isEmpty else { return nil }
        let links = Set(sockets.map { "socket:[\($0)]" })
        for process in names(in: "/proc").compactMap({ Int32($0) }).sorted() where process != getpid() {
            let folder = "/proc/\(process)/fd"
            guard names(in: folder).contains(where: { target(of: "\(folder)/\($0)").map(links.contains) ?? false })
            else { continue }
            let name = lines(of: "/proc/\(process)/comm").first ?? "a program"
            return "\(name.filter { $0.isASCII && !$0.isNewline && $0 >= " " }) (process \(process))"
        }
        return nil
    }

    /// The inodes of the sockets that listen on a port. In proc(5), the local address, the state (0A for listening) and the inode
    /// are in the 2nd, 4th and 10th column.
    static func inodes(lines: [String], _ port: UInt16) -> [String] {
        lines.compactMap { line in
            let columns = line.split(separator: " ", omittingEmptySubsequences: true)
            guard columns.count > 9, columns[3] == "0A", let colon = columns[1].lastIndex(of: ":"),
                UInt16(columns[1][columns[1].index(after: colon)...], radix: 16) == port
            else { return nil }
            return String(columns[9])
        }
    }

    private static func lines(of path: String) -> [String] {
        guard let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        var lines: [String] = []
        var buffer = [CChar](repeating: 0, count: 512)
        while lines.count < 100_000, fgets(&buffer, Int32(buffer.count), file) != nil {
            lines.append(
                String(decoding: buffer.prefix { $0 != 0 && $0 != 0x0a }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
        return lines
    }

    private static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names
    }

    private static func target(of path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: 64)
        let count = readlink(path, &buffer, buffer.count)
        return count > 0 ? String(decoding: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
    }
}
