/// The parameters of a query, as routes and conditions compare them: `name=value` between `&`, both decoded.
///
/// `%XX` is decoded, and `+` is a space, as in forms (WHATWG URL, `application/x-www-form-urlencoded`). A percent sign
/// without two hexadecimal digits stands for itself. A parameter without `=` has an empty value. An empty piece,
/// as in `a&&b`, is not a parameter. Comparing allocates nothing.
public struct QueryParameters: Sendable {
    private let bytes: [UInt8]
    private let range: Range<Int>
    /// Whether a `;` ends a parameter, too, as some servers read it.
    private var endsAtSemicolon = false

    /// The parameters in a part of these bytes: a query without its question mark.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        self.range = range
    }

    /// The ranges of the name and the value of the first parameter at or after `place`, which moves past the parameter.
    func next(from place: inout Int) -> (name: Range<Int>, value: Range<Int>)? {
        while place < range.upperBound {
            let start = place
            var end = start
            var equals: Int?
            while end < range.upperBound, bytes[end] != 0x26, !endsAtSemicolon || bytes[end] != 0x3b {
                if bytes[end] == 0x3d, equals == nil { equals = end }
                end += 1
            }
            place = end + 1
            if end > start { return (start..<(equals ?? end), (equals.map { $0 + 1 } ?? end)..<end) }
        }
        return nil
    }

    /// The parameters as servers read them that separate them by `;` as well.
    var separatedBySemicolons: QueryParameters {
        var other = self
        other.endsAtSemicolon = true
        return other
    }

    /// The place where the first parameter may begin.
    var start: Int { range.lowerBound }

    /// Whether the decoded bytes equal the text. If `plusIsSpace` is false, `+` stands for itself.
    func isText(_ place: Range<Int>, _ text: String, plusIsSpace: Bool = true) -> Bool {
        var at = place.lowerBound
        for byte in text.utf8 {
            guard at < place.upperBound else { return false }
            let isPlus = !plusIsSpace && bytes[at] == 0x2b
            let decoded = QueryParameters.decode(bytes, &at, place.upperBound)
            guard (isPlus ? 0x2b : decoded) == byte else { return false }
        }
        return at == place.upperBound
    }

    /// The bytes of a parameter, its name and its value.
    func pair(_ parameter: (name: Range<Int>, value: Range<Int>)) -> ArraySlice<UInt8> {
        bytes[parameter.name.lowerBound..<parameter.value.upperBound]
    }

    /// The decoded bytes of a range.
    func decoded(_ place: Range<Int>) -> [UInt8] { QueryParameters.decoded(bytes[place]) }

    /// Decodes a name or a value.
    public static func decoded(_ text: some Sequence<UInt8>) -> [UInt8] {
        PercentText.decoded(Array(text), plusIsSpace: true)
    }

    /// Decodes the byte that begins at `at`, which must be before the end.
    private static func decode(_ bytes: [UInt8], _ at: inout Int, _ end: Int) -> UInt8 {
        let byte = bytes[at]
        if byte == 0x25, let decoded = Hex.byte(bytes[..<end], at: at + 1) {
            at += 3
            return decoded
        }
        at += 1
        return byte == 0x2b ? 0x20 : byte
    }
}

/// A query parameter as received, for the keys of caches. Its name is compared decoded.
public struct QueryParameter {
    private let parameters: QueryParameters
    private let place: (name: Range<Int>, value: Range<Int>)

    init(_ parameters: QueryParameters, _ place: (name: Range<Int>, value: Range<Int>)) {
        self.parameters = parameters
        self.place = place
    }

    /// `name=value` as received, without the `&` at either end.
    public var bytes: ArraySlice<UInt8> { parameters.pair(place) }

    /// Whether it has this name, in any percent-encoding. A `+` in it means a space, as in forms, or itself.
    public func isNamed(_ name: String, plusIsSpace: Bool) -> Bool {
        parameters.isText(place.name, name, plusIsSpace: plusIsSpace)
    }
}

extension HttpRequest {
    /// Passes each parameter of the query, in order.
    public func forEachQueryParameter(_ body: (QueryParameter) -> Void) {
        guard target.hasQuery else { return }
        let parameters = QueryParameters(target.bytes, target.query.range)
        var place = parameters.start
        while let parameter = parameters.next(from: &place) { body(QueryParameter(parameters, parameter)) }
    }
}
