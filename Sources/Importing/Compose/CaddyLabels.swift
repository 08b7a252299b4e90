import HttpWare

/// Turns labels of caddy-docker-proxy into directives of a Caddyfile.
enum CaddyLabels {
    private final class Line {
        var name: String
        var order = Int.max
        var arguments: [(String, SourceLocation)] = []
        var names: [String] = []
        var lines: [String: Line] = [:]
        let location: SourceLocation

        init(_ name: String, at location: SourceLocation) {
            self.name = name
            self.location = location
        }
    }

    /// Adds the sites of one container. `{{upstreams}}` and `{{upstreams 80}}` become its address.
    static func add(
        _ labels: [(key: String, value: String, location: SourceLocation)], upstream: String, host: String,
        to result: inout CaddyfileParser.Result
    ) {
        let root = Line("", at: .code)
        for label in labels {
            var line = root
            for part in label.key.split(separator: ".").prefix(16).map(String.init) {
                if let next = line.lines[part] {
                    line = next
                } else {
                    let made = Line(part, at: label.location)
                    line.lines[part] = made
                    line.names.append(part)
                    line = made
                }
            }
            // A value may have several words, which quotes hold together.
            let value = upstreams(label.value, upstream, host)
            let words =
                (try? CaddyfileLexer.read(Array(value.utf8), file: label.location.file).tokens.map(\.text)) ?? [value]
            line.arguments = words.map { ($0, label.location) }
        }
        // caddy, caddy_0, caddy_1: one site each.
        for name in root.names {
            guard let site = root.lines[name] else { continue }
            let addresses = site.arguments.flatMap { text, location in
                text.split(separator: ",").map { token(String($0).trimmed, location) }
            }
            let segments = segments(of: site, 0)
            if addresses.isEmpty {
                result.options += segments
            } else if addresses.count == 1, addresses[0].text.hasPrefix("(") {
                continue
            } else {
                result.sites.append(CaddyfileSite(addresses: addresses, segments: segments))
            }
        }
    }

    private static func segments(of line: Line, _ depth: Int) -> [CaddyfileSegment] {
        guard depth < 16 else { return [] }
        return line.names.enumerated().compactMap { index, name -> (Int, Int, CaddyfileSegment)? in
            guard let inner = line.lines[name] else { return nil }
            // `1_handle` stands before `2_handle`; `handle_0` and `handle_1` are two handles.
            var directive = name[...]
            let number = directive.prefix { $0.isASCII && $0.isNumber }
            var order = Int.max
            if !number.isEmpty, directive.dropFirst(number.count).hasPrefix("_") {
                order = Int(number) ?? Int.max
                directive = directive.dropFirst(number.count + 1)
            }
            if let bar = directive.lastIndex(of: "_"), !directive[directive.index(after: bar)...].isEmpty,
                directive[directive.index(after: bar)...].allSatisfy({ $0.isASCII && $0.isNumber })
            {
                directive = directive[..<bar]
            }
            var words = [token(String(directive), inner.location)] + inner.arguments.map { token($0.0, $0.1) }
            words[0].isFirst = true
            let block = segments(of: inner, depth + 1)
            return (order, index, CaddyfileSegment(words: words, block: block.isEmpty ? nil : block))
        }
        .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
        .map(\.2)
    }

    private static func token(_ text: String, _ location: SourceLocation) -> CaddyfileToken {
        CaddyfileToken(text: text, file: location.file, line: location.line)
    }

    /// The text with the address of the container in place of its templates.
    private static func upstreams(_ text: String, _ upstream: String, _ host: String) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.ranges(of: "{{").first, let close = rest[open.upperBound...].ranges(of: "}}").first {
            result += rest[..<open.lowerBound]
            let words = rest[open.upperBound..<close.lowerBound].split(separator: " ").map(String.init)
            if words.first == "upstreams" {
                var address = upstream
                var scheme = ""
                for word in words.dropFirst() {
                    if ForeignUnits.number(word, in: 1...65535) != nil { address = "\(host):\(word)" }
                    if ["http", "https", "h2c"].contains(word) { scheme = word + "://" }
                }
                result += scheme + address
            } else {
                result += rest[open.lowerBound..<close.upperBound]
            }
            rest = rest[close.upperBound...]
        }
        return result + rest
    }
}
