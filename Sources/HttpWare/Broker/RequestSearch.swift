/// Searches a request's head for placeholders, and replaces them by tokens where that is configured.
struct RequestSearch {
    let swaps: [PlaceholderSwap]
    /// The replaced placeholders.
    private(set) var used: [TokenPlaceholder] = []

    init(_ swaps: [PlaceholderSwap]) { self.swaps = swaps }

    /// Whether the head may contain placeholders.
    static func isNeeded(_ request: borrowing HttpRequest) -> Bool {
        if contains(request.target.bytes) || request.target.bytes.contains(0x25) { return true }
        if contains(request.fields.bytes) { return true }
        return request.fields.lines.contains { !$0.isRemoved && isBasic(request.fields.bytes[$0.value]) }
    }

    private static func contains(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { PlaceholderSearch.first(in: $0) != nil }
    }

    /// Whether this placeholder is in the head, at any place.
    static func holds(_ request: borrowing HttpRequest, _ placeholder: TokenPlaceholder) -> Bool {
        guard isNeeded(request) else { return false }
        if holds(PercentText.decoded(request.target.bytes), placeholder) { return true }
        return request.fields.lines.contains { line in
            guard !line.isRemoved else { return false }
            let value = Array(request.fields.bytes[line.value])
            return holds(value, placeholder) || basic(value).map { holds($0.bytes, placeholder) } == true
        }
    }

    static func holds(_ bytes: [UInt8], _ placeholder: TokenPlaceholder) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var search = PlaceholderSearch(bytes)
            var from = 0
            while let find = search.next(from: from) {
                if find.placeholder == placeholder { return true }
                from = find.range.lowerBound + 1
            }
            return false
        }
    }

    /// Replaces placeholders by their tokens. Throws if a placeholder is left.
    mutating func replace(in request: inout HttpRequest) throws(PlaceholderFault) {
        try searchTarget(&request)
        try searchFields(&request.fields)
    }

    /// Searches trailer fields, in which nothing is replaced.
    func searchTrailers(_ fields: HttpFields) throws(PlaceholderFault) {
        try refuse(fields.bytes, in: "a trailer field")
    }

    // MARK: The target

    private mutating func searchTarget(_ request: inout HttpRequest) throws(PlaceholderFault) {
        let host = Array(request.target.bytes[request.target.host.range])
        try refuse(host, in: "the host")
        try searchPath(&request)
        guard request.target.hasQuery else { return }
        let query = request.target.bytes[request.target.query.range]
        guard RequestSearch.contains(PercentText.decoded(query)) else { return }
        var parts: [[UInt8]] = []
        for pair in query.split(separator: 0x26, omittingEmptySubsequences: false) {
            guard let equals = pair.firstIndex(of: 0x3d) else {
                try refuse(PercentText.decoded(pair), in: "the query")
                parts.append(Array(pair))
                continue
            }
            try refuse(PercentText.decoded(pair[..<equals]), in: "the query")
            let value = PercentText.decoded(pair[(equals + 1)...])
            guard let replaced = try replaced(value, .query, "the query") else {
                parts.append(Array(pair))
                continue
            }
            parts.append(Array(pair[...equals]) + PercentText.encoded(replaced))
        }
        try? request.setQuery(String(decoding: Array(parts.joined(separator: [0x26])), as: UTF8.self))
    }

    /// Replaces placeholders in the path that goes upstream, and refuses percent-encoded ones. The path of records stays.
    private mutating func searchPath(_ request: inout HttpRequest) throws(PlaceholderFault) {
        let path = Array(request.target.bytes[request.target.upstreamPath.range])
        guard RequestSearch.contains(PercentText.decoded(path)) else { return }
        let bare = try replaced(path, .path, "the path", encoded: { _ in [] }) ?? path
        try refuse(PercentText.decoded(bare), in: "the path")
        guard let replaced = try replaced(path, .path, "the path", encoded: RequestSearch.segment) else { return }
        request.setUpstreamPath(replaced)
    }

    /// A token as a part of a segment: all but letters, digits and `-._~!$&'()*+,=:@` is percent-encoded, `;` too, because it begins
    /// parameters for some servers. RFC 3986 §3.3.
    private static func segment(_ token: [UInt8]) -> [UInt8] {
        PercentText.encoded(token) { ByteClass.isUnreserved($0) || "!$&'()*+,=:@".utf8.contains($0) }
    }

    // MARK: Fields

    private mutating func searchFields(_ fields: inout HttpFields) throws(PlaceholderFault) {
        for index in fields.lines.indices where !fields.lines[index].isRemoved {
            let line = fields.lines[index]
            let value = Array(fields.bytes[line.value])
            try refuse(Array(fields.bytes[line.name]), in: "the name of a field")
            let words = "the field \(String(decoding: fields.bytes[line.name], as: UTF8.self))"
            if line.known == .host {
                try refuse(value, in: words)
            } else if let replaced = try replaced(value, .headers, words) {
                fields.setValue(replaced, ofLine: index)
            } else if let basic = RequestSearch.basic(value),
                let replaced = try replaced(basic.bytes, .headers, words)
            {
                fields.setValue(basic.scheme + Array(Base64.encode(replaced).utf8), ofLine: index)
            }
        }
    }

    private static func isBasic(_ value: ArraySlice<UInt8>) -> Bool {
        value.count > 6 && value.prefix(5).elementsEqual("basic".utf8) { ByteClass.lower($0) == $1 }
    }

    /// The decoded credentials of `Basic`, if they contain a placeholder, and the text before them. RFC 7617 §2. Parsed as leniently
    /// as any server might.
    private static func basic(_ value: [UInt8]) -> (scheme: [UInt8], bytes: [UInt8])? {
        guard isBasic(value[...]), value[5] == 0x20 || value[5] == 0x09,
            let start = value[5...].firstIndex(where: { $0 != 0x20 && $0 != 0x09 })
        else { return nil }
        let digits = value[start...].compactMap { byte -> UInt8? in
            switch byte {
            case 0x20, 0x09, 0x3d: nil
            case 0x2d: 0x2b
            case 0x5f: 0x2f
            default: byte
            }
        }
        // Bits after the last byte are ignored.
        guard let bytes = Base64.decode(digits) ?? Base64.decode(digits.dropLast()), contains(bytes) else { return nil }
        return (Array(value[..<start]), bytes)
    }

    // MARK: One text

    /// The text with placeholders replaced by tokens; `nil` if it contains none. A placeholder with escapes is refused, because
    /// the text is already decoded, or must not be decoded.
    private mutating func replaced(
        _ text: [UInt8], _ place: PlaceholderSwap.Places, _ words: String,
        encoded: ([UInt8]) -> [UInt8] = { $0 }
    ) throws(PlaceholderFault) -> [UInt8]? {
        var result: [UInt8] = []
        var from = 0
        while let find = text.withUnsafeBytes({ bytes -> PlaceholderSearch.Find? in
            var search = PlaceholderSearch(bytes)
            return search.next(from: from)
        }) {
            let found = find.placeholder
            guard find.escapes.isEmpty, let swap = swaps.first(where: { $0.placeholder == found }),
                swap.places.contains(place)
            else { throw PlaceholderFault(found, in: words, swaps) }
            result += text[from..<find.range.lowerBound] + encoded(swap.token)
            if !used.contains(found) { used.append(found) }
            from = find.range.upperBound
        }
        guard from > 0 else { return nil }
        return result + text[from...]
    }

    private func refuse(_ text: [UInt8], in place: String) throws(PlaceholderFault) {
        if let fault = RequestSearch.fault(in: text, place, swaps) { throw fault }
    }

    private static func fault(in text: [UInt8], _ place: String, _ swaps: [PlaceholderSwap]) -> PlaceholderFault? {
        text.withUnsafeBytes { bytes in
            PlaceholderSearch.first(in: bytes).map { PlaceholderFault($0.placeholder, in: place, swaps) }
        }
    }
}
