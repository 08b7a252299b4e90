import HttpWare

/// The parameters of a query, as they are written.
struct ScriptQuery {
    private var pairs: [Substring]

    init(_ query: String?) { pairs = query.map { $0.split(separator: "&") } ?? [] }

    private static func name(_ pair: Substring) -> [UInt8] {
        PercentText.decoded(Array(pair.utf8.prefix { $0 != UInt8(ascii: "=") }), plusIsSpace: true)
    }

    /// The decoded values of a parameter, in order.
    func values(of name: String) -> [[UInt8]] {
        let name = Array(name.utf8)
        return pairs.filter { Self.name($0) == name }.map { pair in
            PercentText.decoded(Array(pair.utf8.drop { $0 != UInt8(ascii: "=") }.dropFirst()), plusIsSpace: true)
        }
    }

    /// The query with one value for the parameter, at its first place or at the end; `nil` removes it. `nil` if nothing is left.
    func setting(_ name: String, to value: [UInt8]?) -> String? {
        let bytes = Array(name.utf8)
        let place = pairs.firstIndex { Self.name($0) == bytes }
        var rest = pairs.filter { Self.name($0) != bytes }
        if let value {
            let text = PercentText.encoded(bytes) + [UInt8(ascii: "=")] + PercentText.encoded(value)
            rest.insert(Substring(decoding: text, as: UTF8.self), at: min(place ?? rest.count, rest.count))
        }
        return rest.isEmpty ? nil : rest.joined(separator: "&")
    }
}
