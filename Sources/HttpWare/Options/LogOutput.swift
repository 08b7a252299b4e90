import Glibc

/// A destination of log lines: `stdout`, `stderr`, `file:PATH`, `syslog`, `udp:HOST:PORT` or `tcp:HOST:PORT`; the same for `log` and
/// `accessLog`.
public enum LogOutput: Sendable, Hashable {
    case stdout
    case stderr
    case file(String)
    case syslog
    case network(Network)

    /// Another machine that receives lines.
    public struct Network: Sendable, Hashable {
        /// Whether lines are sent by UDP, one per datagram; otherwise by TCP.
        public let isDatagram: Bool
        /// A name, or an address without brackets.
        public let host: String
        public let port: UInt16
        /// The framing of lines.
        public var framing = Framing.rfc5424

        public init(isDatagram: Bool, host: String, port: UInt16, framing: Framing = .rfc5424) {
            self.isDatagram = isDatagram
            self.host = host
            self.port = port
            self.framing = framing
        }
    }

    /// How lines are framed for another machine.
    public enum Framing: String, OptionWord {
        /// Each line is a message of the syslog protocol. RFC 5424.
        case rfc5424
        /// Each line ends with a line feed.
        case lines
    }
}

extension LogOutput.Network {
    /// Reads `HOST:PORT`, with an IPv6 address in brackets; `nil` for anything else.
    init?(isDatagram: Bool, _ text: Substring) {
        guard let colon = text.lastIndex(of: ":"), let number = UnitText.number(text[text.index(after: colon)...].utf8),
            let port = UInt16(exactly: number), port > 0
        else { return nil }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
            guard let address = IPAddress(host), !address.isIPv4 else { return nil }
        } else {
            let isName = host.utf8.allSatisfy {
                ByteClass.isDigit($0) || (0x61...0x7a).contains($0 | 0x20) || $0 == 0x2d || $0 == 0x2e || $0 == 0x5f
            }
            guard isName, !host.isEmpty, host.utf8.count <= 253 else { return nil }
        }
        self.init(isDatagram: isDatagram, host: host, port: port)
    }
}

extension LogOutput: OptionValue {
    public static let optionType = "log output"
    public static var optionForm: OptionForm { .pattern("stdout|stderr|syslog|file:.+|(udp|tcp):.+:[0-9]+") }

    public var optionText: String {
        switch self {
        case .stdout: "stdout"
        case .stderr: "stderr"
        case .file(let path): "file:\(path)"
        case .syslog: "syslog"
        case .network(let target):
            "\(target.isDatagram ? "udp" : "tcp"):\(target.host.contains(":") ? "[\(target.host)]" : target.host):\(target.port)"
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        switch optionText {
        case "stdout": self = .stdout
        case "stderr": self = .stderr
        case "syslog": self = .syslog
        case _ where optionText.hasPrefix("file:") && optionText.utf8.count > 5 && !optionText.utf8.contains(0):
            self = .file(String(optionText.dropFirst(5)))
        case _ where optionText.hasPrefix("udp:") || optionText.hasPrefix("tcp:"):
            guard let target = Network(isDatagram: optionText.hasPrefix("udp:"), optionText.dropFirst(4)) else {
                throw OptionMistake("write a host and a port, such as \(optionText.prefix(4))logs.example.com:514")
            }
            self = .network(target)
        default: throw OptionMistake("write stdout, stderr, syslog, file:PATH, udp:HOST:PORT or tcp:HOST:PORT")
        }
    }
}

extension OptionsReader {
    /// Reads a log output; the relative path of a file becomes relative to the file that contains it.
    public mutating func read(_ key: String, into output: inout LogOutput, doc: String = "") {
        var located: Located<LogOutput>? = Located(output, at: location)
        read(key, into: &located, doc: doc)
        guard let located, isGiven(key) else { return }
        output = located.value
        if case .file(let path) = output { output = .file(joined(path, writtenIn: located.location.file)) }
    }
}

extension LogOutput {
    /// The reason why lines cannot be written there, as far as can be told without creating a file; `nil` if none is found.
    public var problem: String? {
        guard case .file(let path) = self, FileGate.refusal == nil else { return nil }
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
    /// The system's text, without the call.
    fileprivate var text: String { SystemError.text(of: code) }
}
