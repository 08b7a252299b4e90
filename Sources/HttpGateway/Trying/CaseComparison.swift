import HttpWare

/// Compares a step's expectation with its result. It reads nothing else, so that it can be tested alone.
struct CaseComparison {
    private(set) var differences: [CaseDifference] = []

    /// The maximum number of differences that one step reports.
    static let most = 50

    /// The differences, in the order of the expectation.
    static func differences(_ expectation: CaseExpectation, _ result: StepResult) -> [CaseDifference] {
        var comparison = CaseComparison()
        if let expected = expectation.upstream {
            comparison.compare(expected, result.upstream, "upstream", at: expectation.upstreamLocation)
        }
        if let expected = expectation.response { comparison.compare(expected, result.response) }
        for ware in expectation.wares { comparison.compare(ware, result) }
        if let expected = expectation.calls {
            comparison.compare(expected, result.calls, "calls", at: expectation.callsLocation)
        }
        return Array(comparison.differences.prefix(most))
    }

    private mutating func add(_ location: SourceLocation, _ path: String, _ expected: String, _ actual: String) {
        differences.append(CaseDifference(at: location, path, expected: expected, actual: actual))
    }

    // MARK: Requests

    private mutating func compare(
        _ expected: [ExpectedMessage], _ actual: [StepResult.Sent], _ path: String, at location: SourceLocation
    ) {
        for (index, pair) in zip(expected, actual).enumerated() {
            compare(pair.0, pair.1, expected.count > 1 || actual.count > 1 ? "\(path)[\(index)]" : path)
        }
        guard expected.count != actual.count else { return }
        let what = path == "calls" ? "call" : "request"
        let place = actual.count < expected.count ? expected[actual.count].location : location
        let shown = actual.prefix(5).map { CaseText.line($0) }.joined(separator: ", ")
        add(
            place, path, CaseText.count(expected.count, what),
            CaseText.count(actual.count, what) + (shown.isEmpty ? "" : ": " + shown))
    }

    private mutating func compare(_ expected: ExpectedMessage, _ actual: StepResult.Sent, _ path: String) {
        if let service = expected.service, service.value != actual.service {
            add(service.location, path + ".service", service.value, actual.service ?? "none")
        }
        if let url = expected.url, !CaseComparison.isSame(url.value, actual.url) {
            add(url.location, path + ".url", url.value, actual.url)
        }
        if let method = expected.method, "\(method.value)" != actual.method {
            add(method.location, path + ".method", "\(method.value)", actual.method)
        }
        if let wanted = expected.path {
            let sent =
                wanted.value.contains("?") ? actual.target : String(actual.target.prefix { $0 != "?" })
            if sent != wanted.value { add(wanted.location, path + ".path", wanted.value, sent) }
        }
        compare(expected.fields, actual.fields, path + ".headers")
        compare(expected.trailers, actual.trailers, path + ".trailers")
        compareContent(expected, CaseComparison.decoded(actual.content, actual.fields), path)
    }

    /// The content without its codings, as far as they are known. RFC 9110 §8.4.
    private static func decoded(_ content: [UInt8], _ fields: [CaseFields.Line]) -> [UInt8] {
        let codings = fields.filter { $0.name == .contentEncoding }.map(\.value)
        guard !codings.isEmpty, let decoder = ContentDecoder(codings) else { return content }
        var decoded: [UInt8] = []
        do {
            guard try decoder.decode(content, into: &decoded, upTo: mostDecoded) else { return content }
            try decoder.finish()
        } catch {
            return content
        }
        return decoded
    }

    /// The maximum size of decoded content.
    private static let mostDecoded = 16 << 20

    private static func isSame(_ expected: String, _ actual: String) -> Bool {
        expected == actual || !expected.dropFirst(8).contains("/") && expected + "/" == actual
    }

    // MARK: The response

    private mutating func compare(_ expected: ExpectedMessage, _ actual: Result<HttpResponse, GatewayError>?) {
        let response: HttpResponse
        switch actual {
        case .success(let given): response = given
        case .failure where expected.isCut: return
        case .failure(let error):
            let (cut, why) = ("the response was cut off", error.reason)
            return differences.append(
                CaseDifference(at: expected.location, why.hasPrefix(cut) ? why : "\(cut): \(why)"))
        case nil: return differences.append(CaseDifference(at: expected.location, "there is no response"))
        }
        guard !expected.isCut else { return add(expected.location, "response", "cut off", "complete") }
        if let status = expected.status, status.value != response.status {
            add(status.location, "response.status", "\(status.value.code)", "\(response.status.code)")
        }
        compare(expected.fields, CaseText.lines(response.fields), "response.headers")
        compare(expected.trailers, response.trailers.map { CaseText.lines($0) } ?? [], "response.trailers")
        let content = CaseComparison.decoded(response.content.bytes ?? [], CaseText.lines(response.fields))
        compareContent(expected, content, "response")
    }

    // MARK: Fields

    private mutating func compare(
        _ expected: [ExpectedMessage.Field], _ actual: [CaseFields.Line], _ path: String
    ) {
        for field in expected {
            let values = actual.filter { $0.name == field.name }.map(\.value)
            guard let wanted = CaseComparison.unmet(field.value, values) else { continue }
            let shown = values.isEmpty ? "absent" : values.map { CaseText.quoted($0) }.joined(separator: ", ")
            add(field.location, "\(path).\(field.name)", wanted, shown)
        }
    }

    /// The expectation as text if the values of the lines do not meet it; `nil` if they do.
    private static func unmet(_ expected: ExpectedText, _ values: [String]) -> String? {
        // Several lines are the same as one with all values. RFC 9110 §5.3.
        let joined = values.joined(separator: ", ")
        switch expected {
        case .present: return values.isEmpty ? "present" : nil
        case .absent: return values.isEmpty ? nil : "absent"
        case .lines(let lines):
            if lines.count == values.count, zip(lines, values).allSatisfy({ unmet($0, [$1]) == nil }) { return nil }
            return CaseText.count(lines.count, "line") + ": " + lines.map(shown).joined(separator: ", ")
        case .exactly(let text): return !values.isEmpty && joined == text ? nil : shown(expected)
        case .contains(let text): return joined.contains(text) ? nil : shown(expected)
        case .matches(let pattern):
            return !values.isEmpty && CaseComparison.matches(pattern, Array(joined.utf8)) ? nil : shown(expected)
        }
    }

    private static func shown(_ expected: ExpectedText) -> String {
        switch expected {
        case .present: "present"
        case .absent: "absent"
        case .lines(let lines): lines.map(shown).joined(separator: ", ")
        case .exactly(let text): CaseText.quoted(text)
        case .contains(let text): "a text with \(CaseText.quoted(text))"
        case .matches(let pattern): "a match of \(CaseText.quoted(pattern.source))"
        }
    }

    private static func matches(_ pattern: Pattern, _ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { (try? pattern.matches($0)) ?? false }
    }

    // MARK: Content

    private mutating func compareContent(_ expected: ExpectedMessage, _ actual: [UInt8], _ path: String) {
        let text = String(decoding: actual, as: UTF8.self)
        if let wanted = expected.text, Array(wanted.value.utf8) != actual {
            add(wanted.location, path + ".text", CaseText.quoted(wanted.value), CaseText.content(actual))
        }
        for part in expected.contains where !text.contains(part.value) {
            add(
                part.location, path + ".contains", "a text with \(CaseText.quoted(part.value))",
                CaseText.content(actual))
        }
        if let pattern = expected.matches, !CaseComparison.matches(pattern.value, actual) {
            add(
                pattern.location, path + ".matches", "a match of \(CaseText.quoted(pattern.value.source))",
                CaseText.content(actual))
        }
        compareJson(expected.json, isPart: false, actual, path + ".json")
        compareJson(expected.jsonPart, isPart: true, actual, path + ".jsonPart")
    }

    private mutating func compareJson(
        _ expected: Located<JsonValue>?, isPart: Bool, _ actual: [UInt8], _ path: String
    ) {
        guard let expected else { return }
        let value: JsonValue
        do throws(JsonFault) {
            value = try JsonValue(actual, rules: .exact)
        } catch {
            return add(expected.location, path, CaseText.json(expected.value), CaseText.content(actual))
        }
        var json = JsonComparison(isPart: isPart)
        json.compare(expected.value, value, "$")
        for difference in json.differences {
            let place = difference.path == "$" ? path : "\(path) \(difference.path)"
            add(expected.location, place, difference.expected, difference.actual)
        }
    }

    // MARK: Wares

    private mutating func compare(_ expected: ExpectedWare, _ result: StepResult) {
        guard let wares = result.wares else {
            return differences.append(CaseDifference(at: expected.location, "the exchange has not ended"))
        }
        let actual = wares.filter { $0.label == expected.name }.map(\.word)
        let wanted = expected.words.map(CaseComparison.word)
        let path = "wares.\(expected.name)"
        if wanted == ["none"] {
            if !actual.isEmpty { add(expected.location, path, "none", actual.joined(separator: ", ")) }
            return
        }
        guard !actual.isEmpty else {
            let isInChain = result.labels.contains(expected.name)
            let why =
                isInChain
                ? "none: it did not run"
                : "none: it is not in the chain" + didYouMean(expected.name, among: result.labels)
            return add(expected.location, path, expected.words.joined(separator: ", "), why)
        }
        let isMet = expected.isList ? actual == wanted : actual.contains(wanted[0])
        if !isMet {
            add(expected.location, path, expected.words.joined(separator: ", "), actual.joined(separator: ", "))
        }
    }

    /// The word of records for a short form of it.
    private static func word(_ text: String) -> String {
        switch text {
        case "pass": "passed"
        case "abort": "aborted"
        case "hold": "held"
        case "replace": "replaced"
        case "replay": "replayed"
        case "skip": "skipped"
        case "fail": "failed"
        default: text
        }
    }
}

/// Compares two JSON values, and names the places where they differ.
struct JsonComparison {
    /// A place with other values.
    struct Difference: Equatable {
        /// The place: `$.items[2].name`.
        var path: String
        var expected: String
        var actual: String
    }

    /// Whether objects may have more members than expected.
    let isPart: Bool
    private(set) var differences: [Difference] = []

    /// The maximum number of places.
    static let most = 20

    init(isPart: Bool) { self.isPart = isPart }

    /// The depth of both values is bounded by their readers.
    mutating func compare(_ expected: JsonValue, _ actual: JsonValue, _ path: String) {
        guard differences.count < JsonComparison.most else { return }
        switch (expected, actual) {
        case (.object(let wanted), .object(let given)): compare(wanted, given, path)
        case (.array(let wanted), .array(let given)):
            for (index, pair) in zip(wanted, given).enumerated() { compare(pair.0, pair.1, "\(path)[\(index)]") }
            guard wanted.count != given.count else { return }
            add(path, CaseText.count(wanted.count, "element"), CaseText.count(given.count, "element"))
        case (.number(let wanted), .number(let given)) where JsonComparison.isSame(wanted, given): break
        default: if expected != actual { add(path, CaseText.json(expected), CaseText.json(actual)) }
        }
    }

    private mutating func compare(_ wanted: [JsonValue.Member], _ given: [JsonValue.Member], _ path: String) {
        let values = Dictionary(given.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        for member in wanted {
            let place = path + JsonComparison.step(member.name)
            if let value = values[member.name] {
                compare(member.value, value, place)
            } else {
                add(place, CaseText.json(member.value), "missing")
            }
        }
        guard !isPart else { return }
        let names = Set(wanted.map(\.name))
        for member in given where !names.contains(member.name) {
            add(path + JsonComparison.step(member.name), "missing", CaseText.json(member.value))
        }
    }

    private mutating func add(_ path: String, _ expected: String, _ actual: String) {
        differences.append(Difference(path: path, expected: expected, actual: actual))
    }

    /// Numbers are the same by their value; integers keep all their digits.
    private static func isSame(_ left: String, _ right: String) -> Bool {
        if left == right { return true }
        if Int(left) != nil, Int(right) != nil { return Int(left) == Int(right) }
        guard let one = Double(left), let other = Double(right) else { return false }
        return one == other
    }

    /// The name of a member behind a path.
    private static func step(_ name: String) -> String {
        let isPlain =
            !name.isEmpty && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) || $0 == "_" || $0 == "-" }
        return isPlain ? ".\(name)" : "[\(CaseText.quoted(name))]"
    }
}

/// Short texts for the differences of cases.
enum CaseText {
    /// The maximum number of characters of one value.
    private static let most = 200

    /// The text in quotes, on one line, shortened.
    static func quoted(_ text: String) -> String {
        let scalars = text.unicodeScalars
        var shown = "\""
        for scalar in scalars.prefix(most) {
            switch scalar {
            case "\"", "\\": shown += "\\" + String(scalar)
            case "\n": shown += "\\n"
            case "\r": shown += "\\r"
            case "\t": shown += "\\t"
            case _
            where scalar.properties.generalCategory == .control || scalar.value == 0x2028 || scalar.value == 0x2029:
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown + (scalars.count > most ? "…\"" : "\"")
    }

    /// Content as text, or its size if it is not UTF-8.
    static func content(_ bytes: [UInt8]) -> String {
        if bytes.isEmpty { return "empty" }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return count(bytes.count, "byte") + " that are not UTF-8"
        }
        return quoted(text)
    }

    static func json(_ value: JsonValue) -> String {
        let text = value.json
        return text.unicodeScalars.count > most ? String(text.unicodeScalars.prefix(most)) + "…" : text
    }

    /// `1 request`, `2 requests`.
    static func count(_ number: Int, _ noun: String) -> String { number == 1 ? "1 \(noun)" : "\(number) \(noun)s" }

    /// A request on one line.
    static func line(_ sent: StepResult.Sent) -> String {
        "\(sent.method) \(sent.url.isEmpty ? sent.target : sent.url)" + (sent.service.map { " to \($0)" } ?? "")
    }

    static func lines(_ fields: HttpFields) -> [CaseFields.Line] {
        fields.rawLines.map { CaseFields.Line(name: $0.name, value: String(decoding: $0.value, as: UTF8.self)) }
    }
}
