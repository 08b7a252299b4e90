import CSystemShims
import Glibc

/// A C library that the program has loaded.
struct LoadedLibrary: Equatable {
    /// The name under which it was loaded, such as `libssl.so.3`.
    let name: String
    /// The version as the library, or the name of its file, states it; empty if neither does.
    let version: String
    /// Where it was found.
    let path: String

    /// All of them, in the order of loading.
    static var all: [LoadedLibrary] {
        guard let text = csystem_libraries() else { return [] }
        defer { free(text) }
        return reading(String(cString: text))
    }

    /// Reads lines of a name, a version and a path, with tabs between them.
    static func reading(_ lines: String) -> [LoadedLibrary] {
        lines.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: "\t", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
            return parts.count == 3 ? LoadedLibrary(name: parts[0], version: parts[1], path: parts[2]) : nil
        }
    }

    /// A line for each library: the name, the version, and the path, in columns.
    static func table(of libraries: [LoadedLibrary]) -> String {
        func width(_ text: (LoadedLibrary) -> String) -> Int { libraries.map { text($0).utf8.count }.max() ?? 0 }
        func padded(_ text: String, to width: Int) -> String {
            text + String(repeating: " ", count: width - text.utf8.count)
        }
        let first = width(\.name), second = width(\.version)
        return libraries.map { "\(padded($0.name, to: first))  \(padded($0.version, to: second))  \($0.path)" }
            .joined(separator: "\n")
    }
}
