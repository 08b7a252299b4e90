public import HttpWare

/// A header section from lines such as `Cache-Control: max-age=1`.
public func fields(_ lines: [String]) -> HttpFields {
    var fields = HttpFields()
    for line in lines {
        guard let colon = line.firstIndex(of: ":"), let name = FieldName(String(line[..<colon])) else {
            preconditionFailure("not a field line: \(line)")
        }
        do {
            try fields.append(name, trimmed(line[line.index(after: colon)...]))
        } catch {
            preconditionFailure("not a field value: \(line)")
        }
    }
    return fields
}

/// Without white space at either end, as a decoder leaves it. RFC 9112 §5.1.
private func trimmed(_ value: Substring) -> String {
    var value = value
    while let first = value.first, first == " " || first == "\t" { value = value.dropFirst() }
    while let last = value.last, last == " " || last == "\t" { value = value.dropLast() }
    return String(value)
}

/// 2026-11-21T12:00:00Z, the time at which the tests' responses are received.
public let noon = WallTime(seconds: 1_795_262_400)

/// This number of seconds after noon.
public func after(_ seconds: Int64) -> WallTime { WallTime(seconds: noon.seconds + seconds) }
