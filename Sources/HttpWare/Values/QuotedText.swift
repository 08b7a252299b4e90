extension String {
    /// The text with control characters escaped, so that a file's contents can neither break a line nor move a terminal's cursor.
    package var onOneLine: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if scalar.isControl { text += scalar.escapedForErrors } else { text.unicodeScalars.append(scalar) }
        }
    }

    /// The text in double quotes, on one line, shortened, with marks for user information: for errors that quote it.
    public var quotedForErrors: String {
        var quoted = "\""
        let scalars = withoutUserInformation.unicodeScalars
        for scalar in scalars.prefix(80) {
            switch scalar {
            case "\"", "\\": quoted += "\\" + String(scalar)
            case _ where scalar.isControl: quoted += scalar.escapedForErrors
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + (scalars.count > 80 ? "…\"" : "\"")
    }
}

extension Unicode.Scalar {
    /// Whether it is an invisible character, including C1 and the separators of lines and paragraphs.
    fileprivate var isControl: Bool {
        value < 0x20 || (0x7F...0x9F).contains(value) || value == 0x2028 || value == 0x2029
    }

    fileprivate var escapedForErrors: String {
        switch self {
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        default: "\\u{" + String(value, radix: 16) + "}"
        }
    }
}
