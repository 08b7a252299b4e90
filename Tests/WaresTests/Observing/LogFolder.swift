import Foundation

/// A folder of a test's own, removed with it.
final class LogFolder {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "httpware-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// The path of a file in the folder.
    func file(_ name: String) -> String { path + "/" + name }

    /// The names of its files that this process has open.
    func openFiles() -> [String] {
        let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        let paths = open.compactMap {
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
        }
        return paths.filter { $0.hasPrefix(path + "/") }.map { String($0.dropFirst(path.count + 1)) }.sorted()
    }

    /// The lines of a file in the folder; none if it is not there.
    func lines(_ name: String) -> [String] {
        let text = (try? String(contentsOfFile: file(name), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }
}
