public import HttpWare

/// A filter of captured exchanges, in mitmproxy's language with additional operators: `~d example.com & ! ~c 200`.
///
/// | operator | matches |
/// |---|---|
/// | `~u` or bare text, `~d`, `~m` | the URL, its host, the method |
/// | `~c 404`, `~c 5xx`, `~c >=400`, `~c 500-599` | the status of the response |
/// | `~h`, `~hq`, `~hs` | a field line `name: value` of either message, the request, the response; trailers too |
/// | `~b`, `~bq`, `~bs` | decoded content, as far as it was captured; messages of a WebSocket too |
/// | `~t`, `~tq`, `~ts` | the media type |
/// | `~q`, `~s` | an exchange without a response, with one |
/// | `~e`, `~err` | one that failed; one that failed or whose status is 400 or above |
/// | `~a` | one whose response is a script, a style sheet, an image or a font |
/// | `~src`, `~dst` | the address of the client, of the endpoint, with the port |
/// | `~comment`, `~marked`, `~marker` | the comment; a pinned exchange, which has the marker `:default:` |
/// | `~meta` | `id`, `listener`, `route`, `service`, `replayOf` and `comment` as lines `name: value` |
/// | `~http`, `~all`; `~tcp`, `~udp`, `~dns` | each exchange; none |
/// | `~websocket` or `~ws`, `~sse`, `~grpc` | the kind of exchange |
/// | `~replay`, `~replayq`, `~replays` | a repeated request or a response of the ware `replay`; one of the two |
/// | `~route`, `~service`, `~ware` | the name of the route, the service, a ware that ran |
/// | `~did held` | a decision of a ware, as a whole word or as `ware:decision`; `hit` and other results of a cache, `retried`, `mocked` |
/// | `~dur >500ms`, `~size >1MiB` | the duration; the bytes of both contents; also `<`, `>=`, `<=` and `=` |
/// | `~id 17`, `~id >100`, `~gql NAME` | one exchange, later ones; an operation of GraphQL |
///
/// `!`, `&`, `|` and expressions side by side, which must all match, bind in this order; `( )` group. Text with spaces,
/// parentheses, tildes or quotes must be quoted with `'` or `"`. Within quotes, a backslash escapes only a quote or another
/// backslash.
///
/// Differences from mitmproxy 11: regular expressions use PCRE2 over bytes, ignore the case of ASCII letters everywhere, and have
/// limits. A backslash in quotes stays. `~q)`, `~q&~s`, `~u"x"` and, in parentheses, expressions side by side are accepted. An
/// operator `&` or `|` without one of its sides is refused instead of searched for. Other letters after the digits of `~c`, and
/// statuses of fewer than three digits, are refused too. `$` in `~h` matches the end of a line.
public struct CaptureFilter: Sendable {
    /// The filter as written.
    public let text: String
    /// The operators that need more than the request's head, in the order of the text.
    public let needs: [FilterNeed]
    let root: FilterNode

    /// Reads a filter, and compiles its regular expressions.
    public init(_ text: String) throws(FilterFault) {
        (root, needs) = try FilterParser.parse(text)
        self.text = text
    }

    /// The first operator that is undecided at a phase; `nil` if the whole filter can be decided.
    public func need(beyond phase: CapturePhase) -> FilterNeed? { needs.first { $0.phase > phase } }

    /// Refuses the filter if an operator cannot be decided at a phase.
    public func check(at phase: CapturePhase) throws(FilterFault) {
        guard let need = need(beyond: phase) else { return }
        let mend =
            switch need.name {
            case "~h", "~b", "~t": "write \(need.name)q for the request alone, or let the rule act on the response"
            default: "remove it, or let the rule act on the response"
            }
        throw FilterFault(
            column: need.column, "\(need.name) needs \(need.phase.name), which is not known yet; \(mend)")
    }

    /// Refuses the filter if an operator needs the decisions of wares. A ware that watches an exchange to its end cannot know
    /// them.
    public func checkWithoutRecord() throws(FilterFault) {
        guard let need = needs.first(where: { $0.name == "~ware" || $0.name == "~did" }) else { return }
        throw FilterFault(
            column: need.column, "\(need.name) needs the record of the exchange, which is not complete yet; remove it")
    }

    /// Whether the exchange matches in its current state. False if a regular expression reaches its limit and the rest does not
    /// decide.
    public func matches(_ exchange: CapturedExchange) -> Bool { outcome(exchange) == .matches }

    /// Evaluates the filter for the row of an exchange, which lacks fields, content and messages. If the filter needs them, the
    /// outcome is `undecided`.
    public func outcome(ofRow exchange: CapturedExchange) -> Outcome {
        var evaluation = FilterEvaluation(CapturedBox(exchange), nil, isRow: true)
        switch evaluation.answer(root) {
        case true: return .matches
        case false: return .differs
        case nil: return .undecided
        }
    }

    /// Whether the filter needs `Facts.details`. If `needsSummary` is true, it also needs their summary of the wares'
    /// decisions.
    public var needsDetails: Bool { root.contains { FilterFacts.need($0) == .details } || needsSummary }
    public var needsSummary: Bool { root.contains { FilterFacts.need($0) == .summary } }
    /// Whether the filter needs fields or content.
    public var needsParts: Bool { root.contains { FilterFacts.need($0) == .parts } }

    /// Whether the exchange matches, according to the facts; `nil` if they do not decide.
    public func answer(_ facts: Facts) -> Bool? { FilterFacts(facts).answer(root) }

    /// Whether the facts decide that the exchange does not match.
    public func differs(_ facts: Facts) -> Bool { answer(facts) == false }

    /// The result of an evaluation.
    public enum Outcome: Sendable, Equatable {
        case matches, differs
        /// The result depends on a later phase.
        case undecided
        /// The result depends on a regular expression that reached its limit.
        case limitReached
    }

    /// Evaluates the filter. With a phase, operators that need a later one have no answer yet and decide nothing.
    public func outcome(_ exchange: CapturedExchange, at phase: CapturePhase? = nil) -> Outcome {
        outcome(CapturedBox(exchange), at: phase)
    }

    /// Whether a kept exchange matches.
    func matches(_ box: CapturedBox) -> Bool { outcome(box, at: nil) == .matches }

    private func outcome(_ box: CapturedBox, at phase: CapturePhase?) -> Outcome {
        var evaluation = FilterEvaluation(box, phase)
        switch evaluation.answer(root) {
        case true: return .matches
        case false: return .differs
        case nil: return evaluation.reachedLimit ? .limitReached : .undecided
        }
    }
}

extension CaptureFilter: OptionValue {
    public static let optionType = "filter"
    public var optionText: String { text }

    public init(optionText: String) throws(OptionMistake) {
        do throws(FilterFault) {
            try self.init(optionText)
        } catch {
            throw OptionMistake(
                "see column \(error.column): \(error.sentence)",
                problem: "\(optionText.quotedForErrors) is not a filter")
        }
    }
}

extension CaptureFilter: Hashable {
    /// Filters are equal if their texts are equal.
    public static func == (left: CaptureFilter, right: CaptureFilter) -> Bool { left.text == right.text }
    public func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
