import HttpWare

/// Parses the text of a filter. Parentheses bind first, then `!`, `&`, `|`, and last expressions side by side.
struct FilterParser {
    /// The longest text, in bytes.
    static let longest = 4096
    /// The deepest nesting of parentheses.
    static let deepest = 100

    private let scalars: [Unicode.Scalar]
    private var at = 0
    private var depth = 0
    /// The operators and the phases that they need, in the order of the text.
    private(set) var needs: [FilterNeed] = []

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    /// Parses the whole text.
    static func parse(_ text: String) throws(FilterFault) -> (FilterNode, [FilterNeed]) {
        guard text.utf8.count <= longest else {
            throw FilterFault(
                column: 1, "the filter has \(text.utf8.count) bytes; write at most \(longest)")
        }
        var parser = FilterParser(text)
        let node = try parser.sequence()
        if parser.at < parser.scalars.count {
            throw parser.fault(parser.at, "the parenthesis closes nothing; remove it, or put the text in quotes")
        }
        return (node, parser.needs)
    }

    // MARK: Levels

    /// Expressions side by side: all must match.
    private mutating func sequence() throws(FilterFault) -> FilterNode {
        var nodes: [FilterNode] = []
        while let next = peek(), next != ")" { nodes.append(try disjunction()) }
        if nodes.isEmpty {
            let what = scalars.allSatisfy(FilterParser.isSpace) ? "the filter is empty" : "an expression is missing"
            throw fault(at, "\(what); write one, such as ~d example.com")
        }
        return nodes.count == 1 ? nodes[0] : .all(nodes)
    }

    private mutating func disjunction() throws(FilterFault) -> FilterNode {
        var nodes = [try conjunction()]
        while take("|") { nodes.append(try conjunction()) }
        return nodes.count == 1 ? nodes[0] : .any(nodes)
    }

    private mutating func conjunction() throws(FilterFault) -> FilterNode {
        var nodes = [try negation()]
        while take("&") { nodes.append(try negation()) }
        return nodes.count == 1 ? nodes[0] : .all(nodes)
    }

    private mutating func negation() throws(FilterFault) -> FilterNode {
        var isNegated = false
        while take("!") { isNegated.toggle() }
        let node = try atom()
        return isNegated ? .not(node) : node
    }

    private mutating func atom() throws(FilterFault) -> FilterNode {
        guard let first = peek() else {
            throw fault(
                scalars.count, "an expression is missing; write one behind the operator, such as ~d example.com")
        }
        switch first {
        case "(":
            let start = at
            at += 1
            depth += 1
            guard depth <= FilterParser.deepest else {
                throw fault(start, "the parentheses are nested too deeply; write at most \(FilterParser.deepest)")
            }
            let node = try sequence()
            guard take(")") else { throw fault(start, "the parenthesis is not closed; write ) where it ends") }
            depth -= 1
            return node
        case ")": throw fault(at, "an expression is missing; write one before the parenthesis")
        case "&", "|":
            throw fault(at, "an expression is missing before \(first); write one, or put the text in quotes")
        case "~":
            let start = column(at)
            return .test(try operation(), column: start)
        default:
            let start = column(at)
            let (text, places) = try argument(of: nil)
            return .test(.url(try pattern(text, places, [.ignoresCase], .loop)), column: start)
        }
    }

    // MARK: Operators

    private mutating func operation() throws(FilterFault) -> FilterTest {
        let start = at
        at += 1
        while at < scalars.count, scalars[at].isAsciiLetter { at += 1 }
        let name = text(start + 1..<at)
        guard let argument = FilterOperator.all[name] else {
            let near = didYouMean(name, among: FilterOperator.all.keys.sorted().filter { $0.utf8.count > 1 })
            throw fault(
                start, "the operator ~\(name) does not exist\(near.isEmpty ? "; put a ~ of the text in quotes" : near)")
        }
        if at < scalars.count, !FilterParser.isSpace(scalars[at]), !"()~'\"&|!".unicodeScalars.contains(scalars[at]) {
            throw fault(at, "a space is missing behind ~\(name); write one")
        }
        let test: FilterTest
        switch argument {
        case .nothing(let value): test = value
        case .pattern(let style, let limits, let make):
            let (text, places) = try self.argument(of: name)
            test = make(try pattern(text, places, style, limits))
        case .status: test = .status(try statuses(of: name))
        case .id: test = .id(try numbers(of: name, example: "~id 17, ~id >100 or ~id 10-20"))
        case .duration:
            let (comparison, text, place) = try quantity(of: name, example: ">500ms")
            do throws(OptionMistake) {
                let duration = try Duration(optionText: text)
                test = .duration(comparison, Int64(clamping: duration.milliseconds).multipliedOrMost(by: 1_000_000))
            } catch {
                throw fault(place, "\(text.quotedForErrors) is not a duration; \(error.hint)")
            }
        case .size:
            let (comparison, text, place) = try quantity(of: name, example: ">1MiB")
            do throws(OptionMistake) {
                test = .size(comparison, try ByteCount(optionText: text).bytes)
            } catch {
                throw fault(place, "\(text.quotedForErrors) is not a byte count; \(error.hint)")
            }
        }
        if test.phase > .requestHead {
            needs.append(FilterNeed(phase: test.phase, column: column(start), name: "~\(name)"))
        }
        return test
    }

    private func pattern(
        _ text: String, _ places: [Int], _ style: Pattern.Style, _ limits: Pattern.Limits
    ) throws(FilterFault) -> FilterPattern {
        do throws(Pattern.Malformed) {
            return try FilterPattern(text, style, limits: limits)
        } catch {
            // The offset counts bytes: find the character that contains it.
            var bytes = 0
            var index = 0
            for scalar in text.unicodeScalars {
                bytes += UTF8.width(scalar)
                if bytes > error.offset { break }
                index += 1
            }
            let place = index < places.count ? places[index] : (places.last.map { $0 + 1 } ?? at)
            throw fault(place, "the regular expression is malformed: \(error.message)")
        }
    }

    private static let statusExample = "~c 404, ~c 5xx, ~c >=400 or ~c 500-599"

    /// A status, a class such as `5xx`, a comparison or a range.
    private mutating func statuses(of name: String) throws(FilterFault) -> NumberRange {
        _ = peek()
        let start = at
        if at + 2 < scalars.count, let digit = scalars[at].asciiDigit, scalars[at + 1].value | 0x20 == 0x78,
            scalars[at + 2].value | 0x20 == 0x78
        {
            at += 3
            guard isEndOfWord, (1...5).contains(digit) else {
                throw fault(start, "a class of statuses is 1xx to 5xx; write one, such as ~c 5xx")
            }
            return NumberRange(low: digit * 100, high: digit * 100 + 99)
        }
        let range = try numbers(of: name, example: FilterParser.statusExample)
        // A filter that can match nothing is more often a status that is not written to its end.
        if range.low == range.high, range.low < 100 {
            let near = (1...5).contains(range.low) ? "; write ~c \(range.low)xx for the whole class" : ""
            throw fault(start, "a status has three digits\(near.isEmpty ? ", such as 404" : near)")
        }
        return range
    }

    /// A number, a comparison with one, or two with a hyphen between them.
    private mutating func numbers(of name: String, example: String) throws(FilterFault) -> NumberRange {
        _ = peek()
        let start = at
        let comparison = FilterTest.Comparison.allCases.first { comparison in
            scalars[start...].starts(with: comparison.rawValue.unicodeScalars)
        }
        if let comparison {
            at += comparison.rawValue.unicodeScalars.count
            _ = peek()
        }
        guard let first = digits() else {
            throw fault(at, "~\(name) needs a number; write digits, such as \(example)")
        }
        var last = first
        if comparison == nil, at < scalars.count, scalars[at] == "-" {
            at += 1
            guard let number = digits() else {
                throw fault(at, "the end of the range is missing; write digits, such as \(example)")
            }
            last = number
        }
        guard isEndOfWord else {
            throw fault(start, "~\(name) needs a number; write digits, such as \(example)")
        }
        guard first <= last else {
            throw fault(start, "the range ends before it begins; write \(last)-\(first)")
        }
        switch comparison {
        case .greaterOrEqual: return NumberRange(low: first, high: .max)
        case .greater: return first == .max ? NumberRange(low: 1, high: 0) : NumberRange(low: first + 1, high: .max)
        case .lessOrEqual: return NumberRange(low: 0, high: first)
        case .less: return NumberRange(low: 0, high: first - 1)
        case .equal, nil: return NumberRange(low: first, high: last)
        }
    }

    /// Reads a number, at most the largest `Int`; `nil` if no digit is here.
    private mutating func digits() -> Int? {
        let start = at
        var value = 0
        while at < scalars.count, let digit = scalars[at].asciiDigit {
            value = value.multipliedOrMost(by: 10).addedOrMost(digit)
            at += 1
        }
        return at > start ? value : nil
    }

    /// Whether the text ends here, or something begins that is not part of a word.
    private var isEndOfWord: Bool {
        at == scalars.count || FilterParser.isSpace(scalars[at]) || "()~'\"&|!".unicodeScalars.contains(scalars[at])
    }

    /// A comparison and a value with its unit. Space may separate them.
    private mutating func quantity(
        of name: String, example: String
    ) throws(FilterFault) -> (FilterTest.Comparison, String, Int) {
        _ = peek()
        let start = at
        guard
            let comparison = FilterTest.Comparison.allCases.first(where: {
                scalars[start...].starts(with: $0.rawValue.unicodeScalars)
            })
        else { throw fault(start, "~\(name) needs a comparison; write one, such as ~\(name) \(example)") }
        at += comparison.rawValue.unicodeScalars.count
        _ = peek()
        let place = at
        while at < scalars.count, !FilterParser.isSpace(scalars[at]), !"()~'\"&|!".unicodeScalars.contains(scalars[at])
        {
            at += 1
        }
        return (comparison, text(place..<at), place)
    }

    // MARK: Words

    /// A word or a quoted text, with the position of each of its characters.
    private mutating func argument(of name: String?) throws(FilterFault) -> (String, [Int]) {
        guard let first = peek(), !"()~".unicodeScalars.contains(first) else {
            let name = name ?? ""
            throw fault(
                at, "~\(name) needs a regular expression; write one, in quotes if it contains spaces, ( ) ~ or quotes")
        }
        if first == "\"" || first == "'" { return try quoted(first) }
        let start = at
        while at < scalars.count, !FilterParser.isSpace(scalars[at]), !"()~'\"".unicodeScalars.contains(scalars[at]) {
            at += 1
        }
        return (text(start..<at), Array(start..<at))
    }

    private mutating func quoted(_ quote: Unicode.Scalar) throws(FilterFault) -> (String, [Int]) {
        let start = at
        at += 1
        var text = String.UnicodeScalarView()
        var places: [Int] = []
        while at < scalars.count, scalars[at] != quote {
            let isEscape =
                scalars[at] == "\\" && at + 1 < scalars.count && "\\'\"".unicodeScalars.contains(scalars[at + 1])
            if isEscape { at += 1 }
            text.append(scalars[at])
            places.append(at)
            at += 1
        }
        guard at < scalars.count else { throw fault(start, "the quote is not closed; write \(quote) where it ends") }
        at += 1
        return (String(text), places)
    }

    // MARK: Characters

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII && TextBytes.isSpace(UInt8(scalar.value))
    }

    /// The next character that is not a space. It is not consumed.
    private mutating func peek() -> Unicode.Scalar? {
        while at < scalars.count, FilterParser.isSpace(scalars[at]) { at += 1 }
        return at < scalars.count ? scalars[at] : nil
    }

    private mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard peek() == scalar else { return false }
        at += 1
        return true
    }

    private func text(_ range: Range<Int>) -> String {
        var text = String.UnicodeScalarView()
        text.append(contentsOf: scalars[range])
        return String(text)
    }

    private func column(_ place: Int) -> Int { text(0..<min(place, scalars.count)).count + 1 }

    private func fault(_ place: Int, _ sentence: String) -> FilterFault {
        FilterFault(column: column(place), sentence)
    }
}

extension Unicode.Scalar {
    fileprivate var isAsciiLetter: Bool { (0x61...0x7a).contains(value | 0x20) }
    fileprivate var asciiDigit: Int? { (0x30...0x39).contains(value) ? Int(value - 0x30) : nil }
}

extension FixedWidthInteger {
    fileprivate func multipliedOrMost(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        return overflows ? .max : product
    }

    fileprivate func addedOrMost(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        return overflows ? .max : sum
    }
}
