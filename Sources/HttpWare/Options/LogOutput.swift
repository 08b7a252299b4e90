import Glibc

/// Where log lines go: `stdout`, `stderr`, `file:PATH` or `syslog`; the same words in `log` and in `accessLog`.
public enum LogOutput: Sendable, Hashable {
    case stdout
    case stderr
    case file(String)
    case syslog
}

extension LogOutput: OptionValue {
    public static let optionType = "log output"
    public static var optionForm: OptionForm { .pattern("stdout|stderr|syslog|file:.+") }

    public var optionText: String {
        switch self {
        case .stdout: "stdout"
        case .stderr: "stderr"
        case .file(let path): "file:\(path)"
        case .syslog: "syslog"
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        switch optionText {
        case "stdout": self = .stdout
        case "stderr": self = .stderr
        case "syslog": self = .syslog
        case _ where optionText.hasPrefix("file:") && optionText.utf8.count > 5 && !optionText.utf8.contains(0):
            self = .file(String(optionText.dropFirst(5)))
        default: throw OptionMistake("write stdout, stderr, syslog or file:PATH")
        }
    }
}

extension OptionsReader {
    /// Reads a log output; the relative path of a file becomes relative to the file in which it is written.
    public mutating func read(_ key: String, into output: inout LogOutput, doc: String = "") {
        var located: Located<LogOutput>? = Located(output, at: location)
        read(key, into: &located, doc: doc)
        guard let located, isGiven(key) else { return }
        output = located.value
        if case .file(let path) = output { output = .file(joined(path, writtenIn: located.location.file)) }
    }
}

extension LogOutput {
    /// Why no lines can be written there, as far as can be told without making a file; `nil` where nothing stands against it.
    public var problem: String? {
        guard case .file(let path) = self else { return nil }
        var status = stat()
        if stat(path, &status) == 0 {
            switch status.st_mode & S_IFMT {
            case S_IFDIR: return "\(path.quotedForErrors) is a directory"
            case S_IFSOCK: return "\(path.quotedForErrors) is a socket"
            default:
                guard access(path, W_OK) != 0 else { return nil }
                return "\(path.quotedForErrors) cannot be written: \(SystemError("access").text)"
            }
        }
        let error = SystemError("stat")
        guard error.code == ENOENT else { return "\(path.quotedForErrors) cannot be opened: \(error.text)" }
        let folder = FilePath.directory(of: path)
        let place = folder.isEmpty ? "." : folder
        guard access(place, W_OK | X_OK) != 0 else { return nil }
        return "a file cannot be created in \(place.quotedForErrors): \(SystemError("access").text)"
    }
}

extension SystemError {
    /// The system's text alone.
    fileprivate var text: String { SystemError.text(of: code) }
}
