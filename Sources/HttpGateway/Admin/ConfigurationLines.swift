import Capturing
import GatewayConfig
import HttpWare

/// Shows the lines of a configuration file to people, without secrets and user information.
struct ConfigurationLines {
    private struct Position: Hashable {
        let line: Int, column: Int
    }

    /// The places of secrets.
    private var secrets: Set<Position> = []
    /// The values with user information, by place.
    private var anonymous: [Position: WrittenValue] = [:]
    private let texts: [String]
    private let isRead: Bool

    /// Shorter lines of a secret with several lines may be ordinary words.
    private static let shortestLine = 8

    /// For a file of a configuration; `nil` if the configuration on disk has errors. Then the values are unknown, and only the names of
    /// members are shown. `texts` are masked everywhere.
    init(of file: String, in configuration: GatewayConfiguration?, secrets texts: [String]) {
        isRead = configuration != nil
        let lines = texts.flatMap { text -> [String] in
            let lines = text.split(whereSeparator: \.isNewline)
            return lines.count < 2 ? [] : lines.map { String($0.drop { $0 == " " }) }
        }
        self.texts = (texts.filter { !$0.isEmpty } + lines.filter { $0.utf8.count >= Self.shortestLine })
            .sorted { $0.utf8.count > $1.utf8.count }
        for value in configuration?.values ?? [] where value.location.file == file {
            let place = Position(line: value.location.line, column: value.location.column)
            if value.text == nil {
                secrets.insert(place)
            } else if value.hidesUserInformation {
                anonymous[place] = value
            }
        }
    }

    /// The lines of the file's text, as the errors of the configuration count them.
    func masked(_ text: String) -> [String] {
        let mark: Unicode.Scalar = "\u{feff}"
        let scalars = Array(
            text.unicodeScalars.first == mark ? text.unicodeScalars.dropFirst() : text.unicodeScalars[...])
        let places = ScalarPlaces(in: Array(String(scalars).utf8))
        let lines = Self.lines(of: scalars)
        var masked: [String]
        // The file may have changed since it was read.
        let known = Set(places.all.map { Position(line: $0.line, column: $0.column) })
        if isRead, places.isWhole, secrets.isSubset(of: known), known.isSuperset(of: anonymous.keys) {
            masked = hide(lines, of: scalars, places)
        } else {
            masked = names(lines, of: scalars, places)
        }
        for secret in texts { masked = masked.map { $0.replacing(secret, with: "***") } }
        return masked
    }

    /// The lines without their ends. YAML 1.1 §5.4, which the parser follows.
    private static func lines(of scalars: [Unicode.Scalar]) -> [Range<Int>] {
        var lines: [Range<Int>] = []
        var start = 0
        var at = 0
        while at < scalars.count {
            let end = at
            at += 1
            switch scalars[end] {
            case "\r": if at < scalars.count, scalars[at] == "\n" { at += 1 }
            case "\n", "\u{85}", "\u{2028}", "\u{2029}": break
            default: continue
            }
            lines.append(start..<end)
            start = at
        }
        if start < scalars.count { lines.append(start..<scalars.count) }
        return lines
    }

    /// Lines without their secrets. The rest of a secret's last line is hidden with it.
    private func hide(_ lines: [Range<Int>], of scalars: [Unicode.Scalar], _ places: ScalarPlaces) -> [String] {
        var rest = places.all[...]
        /// The end of the last hidden text.
        var end = 0
        /// The end of the last text.
        var textEnd = 0
        var comments = HiddenComments()
        return lines.map { line in
            let (before, start) = (rest, max(line.lowerBound, textEnd))
            let isInside = line.lowerBound < end
            var shown = line.upperBound
            while let place = rest.first, place.range.lowerBound <= line.upperBound {
                rest.removeFirst()
                textEnd = max(textEnd, place.range.upperBound)
                guard isHidden(place, String(scalars[line])) else { continue }
                shown = min(shown, place.range.lowerBound)
                end = max(end, place.range.upperBound)
            }
            if isInside { return "…" }
            let comment = Self.comment(in: start..<max(start, shown), of: scalars, before) ?? shown
            let text =
                Redaction.text(String(scalars[line.lowerBound..<comment]))
                + (comment < shown ? comments.masked(String(scalars[comment..<shown])) : "")
            return shown < line.upperBound ? text + "***" : text
        }
    }

    /// The start of a line's comment: a `#` at the start of the line or after a space, outside of the texts. YAML 1.2 §6.6.
    private static func comment(
        in line: Range<Int>, of scalars: [Unicode.Scalar], _ places: ArraySlice<ScalarPlaces.Place>
    ) -> Int? {
        var rest = places
        var at = line.lowerBound
        while at < line.upperBound {
            while let place = rest.first, place.range.upperBound <= at { rest.removeFirst() }
            if let place = rest.first, place.range.contains(at) {
                at = place.range.upperBound
            } else if scalars[at] == "#", at == line.lowerBound || scalars[at - 1] == " " || scalars[at - 1] == "\t" {
                return at
            } else {
                at += 1
            }
        }
        return nil
    }

    /// Whether a text that begins in a line must be hidden.
    private func isHidden(_ place: ScalarPlaces.Place, _ line: String) -> Bool {
        let position = Position(line: place.line, column: place.column)
        if secrets.contains(position) { return true }
        guard let value = anonymous[position] else { return false }
        // User information may go on in the next line, unless each line is a line of the value.
        if place.isOnSeveralLines { return !place.isLiteral }
        // A value with escapes, so that a mark cannot be put in the right place: `http://u:p\u0040h`.
        return line.contains("\\") && !Redaction.text(line).contains(value.text ?? "")
    }

    /// The parts of lines that cannot contain a secret: the names of members.
    private func names(_ lines: [Range<Int>], of scalars: [Unicode.Scalar], _ places: ScalarPlaces) -> [String] {
        let keys = Dictionary(
            places.all.lazy.filter { $0.isKey && !$0.isOnSeveralLines }.map { ($0.range.lowerBound, $0.range) },
            uniquingKeysWith: { first, _ in first })
        return lines.map { line in
            let text = scalars[line]
            let start = text.firstIndex { $0 != " " && $0 != "-" } ?? line.upperBound
            let indent = String(text[..<start])
            guard start < line.upperBound else { return indent }
            guard let key = keys[start], key.upperBound <= line.upperBound, scalars[key].allSatisfy(isOfName) else {
                return indent + "…"
            }
            let after = text[key.upperBound...].drop { $0 == " " || $0 == ":" }
            return indent + String(scalars[key]) + (after.isEmpty ? ":" : ": …")
        }
    }

    private func isOfName(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isAlphabetic || scalar.properties.numericType != nil || scalar == "-" || scalar == "_"
    }
}

/// Masks comments, which may have secrets that were in use: members that are named like credentials with their lines, and private keys.
private struct HiddenComments {
    /// Whether a private key has begun.
    private var isInKey = false
    /// The indentation of a member whose value goes on in deeper lines.
    private var member: Int?

    /// A comment without values that are named like credentials, and without user information.
    mutating func masked(_ comment: String) -> String {
        let hashes = comment.prefix { $0 == "#" }
        let text = comment.dropFirst(hashes.count)
        let indent = text.prefix { $0 == " " }
        let body = text.dropFirst(indent.count)
        let hidden = hashes + indent + "…"
        if isInKey {
            isInKey = !body.contains("-----END")
            return String(hidden)
        }
        if let member, indent.count > member || body.isEmpty { return body.isEmpty ? comment : String(hidden) }
        member = nil
        if body.contains("-----BEGIN"), body.contains("KEY") {
            isInKey = !body.contains("-----END")
            return String(hidden)
        }
        if let colon = body.firstIndex(of: ":"),
            case let value = body[body.index(after: colon)...].drop(while: { $0 == " " }),
            value.isEmpty || value.first == "|" || value.first == ">",
            Redaction.isSecret(name: body[..<colon].trimmingPrefix { $0 == "-" || $0 == " " }.description)
        {
            member = indent.count
        }
        return hashes + indent + Redaction.text(TextMask.masked(String(body)))
    }
}

extension String {
    fileprivate init(_ scalars: some Sequence<Unicode.Scalar>) {
        var view = UnicodeScalarView()
        view.append(contentsOf: scalars)
        self.init(view)
    }
}
