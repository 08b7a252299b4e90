import Glibc

/// The path of a file, as an option has it. A relative one is relative to the file in which it is written, not to the
/// working directory: `OptionsReader` joins the two.
public struct FilePath: Sendable, Hashable, CustomStringConvertible {
    /// As it is opened.
    public var path: String

    /// Takes a path as it is opened.
    public init(_ path: String) { self.path = path }

    public var description: String { path }

    /// The path as it is opened, if it is written in this file. An absolute one, and one that was written in code or came
    /// from standard input, stays as it is.
    public static func joined(_ path: String, writtenIn file: String) -> String {
        joined(directory(of: file), path)
    }

    /// A path relative to a directory, which is empty for the working directory; an absolute one as it is. `~/` is the user's home.
    public static func joined(_ directory: String, _ path: String) -> String {
        if path.hasPrefix("~/") { return joined(home, String(path.dropFirst(2))) }
        return directory.isEmpty || path.hasPrefix("/")
            ? path : directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// The home folder of the user: `$HOME`, or what the system knows.
    public static var home: String {
        if let home = getenv("HOME"), home.pointee != 0 { return String(cString: home) }
        return getpwuid(getuid()).map { String(cString: $0.pointee.pw_dir) } ?? "/"
    }

    /// What stands before the last slash; empty for a plain name.
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
    /// Reads a path; a relative one becomes relative to the file in which it is written.
    public mutating func read(_ key: String, into path: inout FilePath?, doc: String = "") {
        var located: Located<FilePath>?
        read(key, into: &located, doc: doc)
        guard let located else { return }
        path = FilePath(joined(located.value.path, writtenIn: located.location.file))
    }

    /// The path as it is opened, which is noted: the same words in another place may mean another file.
    public mutating func joined(_ path: String, writtenIn file: String) -> String {
        let joined = FilePath.joined(path, writtenIn: file)
        paths.append(joined)
        return joined
    }
}
