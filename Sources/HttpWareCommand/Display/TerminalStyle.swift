import FoundationEssentials
import Glibc

/// The form of text for a descriptor: colours and a width if it is a terminal, otherwise plain text.
struct TerminalStyle: Equatable {
    /// Whether colours and bold print are used: the descriptor is a terminal, and neither `NO_COLOR` nor `TERM=dumb` is set.
    /// https://no-color.org
    var hasColours = false
    /// The columns of the terminal. Without a terminal it is `nil`, and lines are not cut.
    var width: Int?
    /// Whether characters beyond ASCII can be shown.
    var isUnicode = true

    /// Plain text without colours.
    static let plain = TerminalStyle()

    init(hasColours: Bool = false, width: Int? = nil, isUnicode: Bool = true) {
        self.hasColours = hasColours
        self.width = width
        self.isUnicode = isUnicode
    }

    /// The style for a descriptor.
    init(_ descriptor: Int32, environment: [String: String] = ProcessInfo.processInfo.environment) {
        let isTerminal = isatty(descriptor) == 1
        var size = winsize()
        let columns = isTerminal && ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 ? Int(size.ws_col) : 0
        self.init(isTerminal: isTerminal, columns: columns, environment: environment)
    }

    init(isTerminal: Bool, columns: Int, environment: [String: String]) {
        hasColours = isTerminal && environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
        if isTerminal {
            let told = columns > 0 ? columns : Int(environment["COLUMNS", default: ""]) ?? 80
            width = min(max(told, 20), 500)
        }
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        isUnicode = locale.lowercased().contains("utf-8") || locale.lowercased().contains("utf8")
    }

    // MARK: Text

    /// A colour, or another emphasis.
    enum Look: String {
        case bold = "1"
        case dim = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
    }

    /// The text with that emphasis, if colours are used.
    func paint(_ text: String, _ look: Look?) -> String {
        guard hasColours, let look, !text.isEmpty else { return text }
        return "\u{1b}[\(look.rawValue)m\(text)\u{1b}[0m"
    }

    /// An external text in a form that is safe to show: one line, without control characters, in ASCII if the terminal supports
    /// nothing else.
    func shown(_ text: String) -> String {
        var shown = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "…" where !isUnicode: shown += "..."
            case _ where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value): shown += "?"
            // Characters that reverse or hide the text after them.
            case _ where scalar.properties.generalCategory == .format: shown += "?"
            case _ where scalar.value > 0x7f && !isUnicode: shown += "?"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    /// The text in exactly `columns` columns: padded with spaces, or cut in the middle with a mark.
    func fitted(_ text: String, _ columns: Int) -> String {
        let count = text.count
        if count <= columns { return text + String(repeating: " ", count: columns - count) }
        let mark = isUnicode ? "…" : "~"
        guard columns > 8 else { return columns > 0 ? String(text.prefix(columns - 1)) + mark : "" }
        let tail = columns / 3
        return String(text.prefix(columns - 1 - tail)) + mark + String(text.suffix(tail))
    }

    // MARK: Values

    /// `0.42 ms`, `12.3 ms`, `212 ms`, `3.40 s`.
    static func time(_ milliseconds: Double) -> String {
        if milliseconds >= 9_999.5 { return decimal(milliseconds / 1000, 1) + " s" }
        if milliseconds >= 999.5 { return decimal(milliseconds / 1000, 2) + " s" }
        if milliseconds >= 99.95 { return decimal(milliseconds, 0) + " ms" }
        return decimal(milliseconds, milliseconds >= 9.995 ? 1 : 2) + " ms"
    }

    /// `512 B`, `1.2 KiB`, `34 MiB`.
    static func size(_ bytes: Int) -> String {
        if bytes < 1024 { return "\(bytes) B" }
        var value = Double(bytes)
        for unit in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
            value /= 1024
            if value < 1023.95 || unit == "PiB" { return decimal(value, value < 9.95 ? 1 : 0) + " " + unit }
        }
        return ""
    }

    /// A duration in at most two units: `350ms`, `12s`, `3m20s`, `2h5m`.
    static func span(_ milliseconds: Int) -> String {
        let seconds = milliseconds / 1000
        if seconds < 1 { return "\(max(0, milliseconds))ms" }
        if seconds < 60 { return "\(seconds)s" }
        let (large, small) = seconds < 3600 ? (seconds / 60, seconds % 60) : (seconds / 3600, seconds % 3600 / 60)
        let units = seconds < 3600 ? ("m", "s") : ("h", "m")
        return small == 0 ? "\(large)\(units.0)" : "\(large)\(units.0)\(small)\(units.1)"
    }

    private static func decimal(_ value: Double, _ digits: Int) -> String {
        let scale = [1, 10, 100][digits]
        let scaled = Int((min(max(value, 0), 1e12) * Double(scale)).rounded())
        guard digits > 0 else { return "\(scaled)" }
        let rest = String(scaled % scale)
        return "\(scaled / scale)." + String(repeating: "0", count: digits - rest.count) + rest
    }
}
