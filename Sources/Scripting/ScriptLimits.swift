/// The limits of a script's state. A script that exceeds one is ended with an error.
public struct ScriptLimits: Sendable, Equatable {
    /// The most bytes of the state, with garbage that is not collected yet.
    public var memory: Int
    /// The longest time of running in one call, without the time in which the call waits.
    public var callTime: Duration
    /// The longest time for the main part of a script, which runs once for each state.
    public var loadTime: Duration

    /// The longest string: an eighth of the memory. One instruction may read a whole string, so this bounds an instruction's time, too.
    public var string: Int { memory / 8 }

    public init(
        memory: Int = 16 << 20, callTime: Duration = .milliseconds(5), loadTime: Duration = .milliseconds(50)
    ) {
        self.memory = memory
        self.callTime = callTime
        self.loadTime = loadTime
    }
}

/// An error of a script, or the limit that it exceeded.
public struct ScriptFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of faults.
    public enum Kind: Sendable, Equatable {
        /// An error that the script raised, or that Lua found in it.
        case error
        /// The script ran for longer than its time.
        case overTime
        /// The state needed more memory than its limit, and has ended.
        case overMemory
    }

    public let kind: Kind
    /// The script's name, as errors show it.
    public let name: String
    /// The number of the line, if it is known.
    public let line: Int?
    /// The reason: Lua's own text, without the line.
    public let reason: String

    /// The script's name, the line and the reason.
    public var description: String { "\(name):\(line.map { "\($0):" } ?? "") \(reason)" }

    public init(_ kind: Kind, name: String, line: Int?, reason: String) {
        self.kind = kind
        self.name = name
        self.line = line
        self.reason = reason
    }

    /// Reads the text of an error, which may begin with the script's name and a line.
    init(_ kind: Kind, name: String, line: Int, text: some Collection<UInt8>) {
        var text = Array(text)
        var line = line
        let shown = Array(
            (name.utf8.count < 60 ? name : "..." + String(decoding: name.utf8.suffix(56), as: UTF8.self)).utf8)
        if text.starts(with: shown + [UInt8(ascii: ":")]) {
            let rest = text.dropFirst(shown.count + 1)
            let digits = rest.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            let after = rest.dropFirst(digits.count)
            if let number = Int(String(decoding: digits, as: UTF8.self)), after.first == UInt8(ascii: ":") {
                line = number
                text = Array(after.dropFirst().drop { $0 == UInt8(ascii: " ") })
            }
        }
        // A script may put any bytes into an error, but a log has one line for it.
        let reason = String(decoding: text.map { $0 < 0x20 || $0 == 0x7f ? UInt8(ascii: " ") : $0 }, as: UTF8.self)
        self.init(kind, name: name, line: line > 0 ? line : nil, reason: reason)
    }
}
