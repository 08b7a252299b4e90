import HttpWare

/// Turns matchers of Caddy into conditions.
struct CaddyMatchers {
    /// The definitions `@name` that are visible, by name without `@`; a later one replaces an earlier one.
    var named: [String: CaddyfileSegment] = [:]

    /// The networks that `private_ranges` stands for.
    static let privateRanges = ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "::1/128"]

    /// The condition of a matcher token: `*`, `/path*` or `@name`; `nil` if the text is no matcher.
    func test(of token: CaddyfileToken) -> RequestTest? {
        if token.text == "*" { return .always }
        if token.text.hasPrefix("/") { return Self.path(token.text) }
        guard token.text.hasPrefix("@") else { return nil }
        guard let segment = named[String(token.text.dropFirst())] else { return .unknown(token.text) }
        return test(of: segment)
    }

    /// The condition of a definition `@name …`.
    func test(of segment: CaddyfileSegment) -> RequestTest {
        if segment.words.count > 1 {
            if segment.words.count == 2, segment.words[1].isQuoted {
                // A quoted text alone is an expression.
                return .unknown("expression " + segment.words[1].text)
            }
            return matchers([CaddyfileSegment(words: Array(segment.words.dropFirst()), block: segment.block)], 0)
        }
        return matchers(segment.block ?? [], 0)
    }

    /// All lines of a matcher must match; lines of one kind share their values.
    private func matchers(_ segments: [CaddyfileSegment], _ depth: Int) -> RequestTest {
        guard depth < 16 else { return .unknown("matchers nested too deep") }
        var all: [RequestTest] = []
        var values: [String: [RequestTest]] = [:]
        for segment in segments {
            let arguments = segment.arguments
            switch segment.name {
            case "path": values["path", default: []] += arguments.map(Self.path)
            case "host": values["host", default: []] += arguments.map(Self.host)
            case "method": values["method", default: []] += arguments.map { .method($0.uppercased()) }
            case "remote_ip", "client_ip":
                guard !arguments.contains("forwarded") else {
                    all.append(.unknown(segment.shown))
                    continue
                }
                values[segment.name, default: []] += arguments.flatMap(Self.networks)
            case "protocol" where arguments == ["http"] || arguments == ["https"]:
                all.append(.scheme(arguments[0]))
            case "protocol" where arguments == ["grpc"]: all.append(.header("Content-Type", "~^application/grpc"))
            case "path_regexp":
                guard let expression = arguments.last, arguments.count <= 2 else {
                    all.append(.unknown(segment.shown))
                    continue
                }
                all.append(.path(.expression(expression), ignoresCase: false))
            case "header": all.append(header(arguments, &values, segment))
            case "header_regexp":
                guard arguments.count == 2 || arguments.count == 3 else {
                    all.append(.unknown(segment.shown))
                    continue
                }
                all.append(.header(arguments[arguments.count - 2], "~" + (arguments.last ?? "")))
            case "query":
                for argument in arguments {
                    let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                    guard parts.count == 2, !parts[0].isEmpty, !argument.contains("{") else {
                        all.append(.unknown(segment.shown))
                        continue
                    }
                    let value = parts[1] == "*" ? nil : RequestTest.literal(String(parts[1]))
                    values["query " + parts[0], default: []].append(.query(String(parts[0]), value))
                }
            case "not":
                let inner =
                    segment.block
                    ?? [CaddyfileSegment(words: Array(segment.words.dropFirst()), block: nil)].filter {
                        !$0.words.isEmpty
                    }
                all.append(.not(matchers(inner, depth + 1)))
            case "all-of":
                // Of adapted JSON: several sets, of which one must match.
                all.append(.any((segment.block ?? []).map { matchers($0.block ?? [], depth + 1) }))
            default: all.append(.unknown(segment.shown))
            }
        }
        for key in values.keys.sorted() {
            if let alternatives = values[key] { all.append(.any(alternatives)) }
        }
        return .all(all)
    }

    private func header(
        _ arguments: [String], _ values: inout [String: [RequestTest]], _ segment: CaddyfileSegment
    ) -> RequestTest {
        guard let name = arguments.first, arguments.count <= 2, !segment.shown.contains("{") else {
            return .unknown(segment.shown)
        }
        if name.hasPrefix("!") { return .not(.header(String(name.dropFirst()), nil)) }
        let value = arguments.count == 2 ? arguments[1] : "*"
        var test: String?
        if value != "*" {
            let starts = value.hasPrefix("*")
            let ends = value.hasSuffix("*") && value.utf8.count > 1
            let middle = PathTest.escapedLiteral(String(value.dropFirst(starts ? 1 : 0).dropLast(ends ? 1 : 0)))
            test =
                starts || ends
                ? "~" + (starts ? "" : "^") + middle + (ends ? "" : "$") : RequestTest.literal(value)
        }
        values["header " + name.lowercased(), default: []].append(.header(name, test))
        return .always
    }

    // MARK: Single values

    /// A path of a matcher. Caddy compares paths without regard to case.
    static func path(_ text: String) -> RequestTest {
        let stars = text.utf8.count { $0 == UInt8(ascii: "*") }
        guard !text.contains("{"), !text.contains("["), !text.contains("\\"), !text.contains("?") else {
            return .unknown("path " + text)
        }
        if text == "*" || text == "/*" { return .always }
        if stars == 0 { return .path(.exact(text), ignoresCase: true) }
        if stars == 1, text.hasSuffix("*") { return .path(.prefix(String(text.dropLast())), ignoresCase: true) }
        if stars == 1, text.hasPrefix("*") { return .path(.suffix(String(text.dropFirst())), ignoresCase: true) }
        if stars == 2, text.hasPrefix("*"), text.hasSuffix("*") {
            return .path(.contains(String(text.dropFirst().dropLast())), ignoresCase: true)
        }
        return .path(.glob(text), ignoresCase: true)
    }

    /// A host of a matcher or an address: `*` stands for one label.
    static func host(_ text: String) -> RequestTest {
        let text = ForeignVariables.replaced(text, open: "{$").text
        if text.hasPrefix("*."), HostText.isName(String(text.dropFirst(2))) {
            return .hostBelow(String(text.dropFirst(2)))
        }
        return HostText.isName(text) ? .host(text) : .unknown("host " + text)
    }

    private static func networks(_ text: String) -> [RequestTest] {
        if text == "private_ranges" { return privateRanges.map { .client($0) } }
        guard let network = NetworkText.network(text) else { return [.unknown("remote_ip " + text)] }
        return [.client(network)]
    }
}
