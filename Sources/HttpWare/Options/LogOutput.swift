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
