/// Durations, sizes and numbers as the gateways of others write them, turned into ours.
enum ForeignUnits {
    /// A duration of Go, such as `1m30s`, `500ms` or `1.5h`, as one of ours; a number alone is in `unit`. `nil` if it is not one, is negative or
    /// longer than a year.
    static func duration(_ text: String, numbersAre unit: String = "s") -> String? {
        guard let milliseconds = milliseconds(text, numbersAre: unit) else { return nil }
        if milliseconds == 0 { return "0s" }
        for (name, factor) in [("h", 3_600_000), ("m", 60_000), ("s", 1000)] where milliseconds % factor == 0 {
            return "\(milliseconds / factor)\(name)"
        }
        return "\(milliseconds)ms"
    }

    /// The duration in milliseconds, rounded up.
    static func milliseconds(_ text: String, numbersAre unit: String = "s") -> Int? {
        let factors: [String: Double] = [
            "ns": 0.000001, "us": 0.001, "µs": 0.001, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000,
        ]
        var total = 0.0
        var rest = text[...]
        guard !rest.isEmpty, rest.utf8.count < 64 else { return nil }
        while !rest.isEmpty {
            let number = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            rest = rest.dropFirst(number.count)
            let name = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(name.count)
            guard let value = Double(number), let factor = factors[name.isEmpty ? unit : String(name)] else {
                return nil
            }
            if name.isEmpty, !rest.isEmpty { return nil }
            total += value * factor
        }
        guard total.isFinite, total >= 0, total <= 365 * 86_400_000 else { return nil }
        return Int(total.rounded(.up))
    }

    /// A size such as `10MB`, `2m`, `512k` or `1000`, as a byte count of ours; `isBinary`: `k`, `m` and `g` are powers of 1024.
    static func size(_ text: String, isBinary: Bool) -> String? {
        let lower = text.lowercased().filter { $0 != " " }
        let number = lower.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        let unit = String(lower.dropFirst(number.count))
        let base = isBinary || unit.contains("i") ? 1024.0 : 1000.0
        let power = [
            "": 0, "b": 0, "k": 1, "kb": 1, "kib": 1, "ki": 1, "m": 2, "mb": 2, "mib": 2, "mi": 2, "g": 3, "gb": 3,
            "gib": 3, "gi": 3,
        ][unit]
        guard let value = Double(number), let power else { return nil }
        var bytes = value
        for _ in 0..<power { bytes *= base }
        guard bytes.isFinite, bytes >= 0, bytes <= Double(1 << 50) else { return nil }
        return self.bytes(Int(bytes.rounded()))
    }

    /// A number of bytes as a byte count of ours, in the largest unit that says it exactly.
    static func bytes(_ count: Int) -> String {
        for (name, factor) in [
            ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("GB", 1_000_000_000), ("MB", 1_000_000),
            ("kB", 1000),
        ] where count > 0 && count % factor == 0 {
            return "\(count / factor)\(name)"
        }
        return "\(count)B"
    }

    /// The number of a text, if it is a whole one in the range.
    static func number(_ text: String?, in range: ClosedRange<Int>) -> Int? {
        guard let text, let number = Int(text), range.contains(number) else { return nil }
        return number
    }
}
