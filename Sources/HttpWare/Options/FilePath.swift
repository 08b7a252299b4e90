import Glibc

/// The path of a file in an option. A relative path is relative to the file that contains it, not to the
/// working directory: `OptionsReader` joins the two.
public struct FilePath: Sendable, Hashable, CustomStringConvertible {
    /// The path for opening the file.
    public var path: String

    /// Makes a path for opening a file.
    public init(_ path: String) { self.path = path }

    public var description: String { path }

    /// The path for opening a file, if it was written in `file`. An absolute path, and a path from code or
    /// standard input, stays unchanged.
    public static func joined(_ path: String, writtenIn file: String) -> String {
        joined(directory(of: file), path)
    }

    /// A path relative to a directory, which is empty for the working directory; an absolute path is unchanged. `~/` is the user's home.
    public static func joined(_ directory: String, _ path: String) -> String {
        if path.hasPrefix("~/") { return joined(home, String(path.dropFirst(2))) }
        return directory.isEmpty || path.hasPrefix("/")
            ? path : directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// The home folder of the user: `$HOME`, or else from the system's user database.
    public static var home: String {
        if let home = getenv("HOME"), home.pointee != 0 { return String(cString: home) }
        return getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? "/"
    }

    /// The part before the last slash; empty for a plain name.
    public static func directory(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "" }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

extension FilePath: OptionValue {
    public static let optionType = "path"
    public var optionText: String { path }
    public init(optionText: String) throws(OptionMistake) {
        guard !optionText.isEmpty, !optionText.utf8.contains(0) else {
            throw OptionMistake("write a path such as page.html")
        }
        path = optionText
    }
}

extension OptionsReader {
    /// Reads a path; a relative path becomes relative to the file that contains it.
    public mutating func read(_ key: String, into path: inout FilePath?, doc: String = "") {
        var located: Located<FilePath>?
        read(key, into: &located, doc: doc)
        guard let located else { return }
        path = FilePath(joined(located.value.path, writtenIn: located.location.file))
    }

    /// The path for opening the file. It is recorded, because the same text in another place may name another file.
    public mutating func joined(_ path: String, writtenIn file: String) -> String {
        let joined = FilePath.joined(path, writtenIn: file)
        paths.append(joined)
        return joined
    }
}
