/// Replaces a token by a placeholder in a stream of bytes, in linear time and wherever the stream is cut.
///
/// The token is found as plain text, percent-encoded (RFC 3986 §2.1), and escaped in JSON (RFC 8259 §7). It is also found in base64,
/// at each of its three alignments. In base64 the rest of the run is shifted, so that it decodes to the text with the placeholder.
/// Bytes that may be the beginning of the token are held back until the next ones decide.
struct TokenScrubber {
    /// The number of finds.
    private(set) var finds = 0
    /// Whether a token was found whose beginning had already been sent.
    private(set) var isBroken = false
    private let placeholder: [UInt8]
    private let search: TokenSearch

    private var literal: SequenceMatcher
    private var percent: SequenceMatcher
    private var json: SequenceMatcher
    /// Whether an escape character came since nothing was matched. Until then, all three readings of the text are the same, and only
    /// `literal` and the first three matchers for base64 are used.
    private var hasEscapes = false
    /// The matchers for percent-encoded text, then those for JSON-escaped text. Each list is ordered by the number of bytes before the
    /// token in its group of three.
    private var base64: [SequenceMatcher]

    /// Bytes of the stream from `base` on.
    private var pending: [UInt8] = []
    private var base = 0
    /// The place up to which the stream was sent.
    private var sent = 0
    /// The place of the next byte to process.
    private var position = 0
    /// The start of an incomplete escape: `%41`, `\u0041`.
    private var percentStart: Int?
    private var jsonStart: Int?
    private var splice: Base64Splice?
    /// Whether the run of base64 has ended in padding, whose rest is dropped.
    private var dropsPadding = false
    /// Line ends after a run of base64, which may continue in the next line.
    private var lineEnds: [UInt8] = []

    /// The maximum number of symbols that are sent when the stream pauses, although they may begin a token.
    private static let shortPrefix = 3

    /// Makes a scrubber for a token.
    init(_ search: TokenSearch, placeholder: TokenPlaceholder) {
        self.search = search
        self.placeholder = placeholder.bytes
        literal = SequenceMatcher(search.literal)
        percent = literal
        json = literal
        base64 = (search.base64 + search.base64).map { SequenceMatcher($0) }
    }

    // MARK: The stream

    /// Processes a piece of the stream, and appends the output.
    mutating func feed(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        pending.append(contentsOf: input)
        let end = base + pending.count
        while position < end {
            if isAtRest {
                forgetEscapes()
                // Nothing is matched: skips to the next byte that may begin a match.
                position =
                    base + pending.withUnsafeBufferPointer { search.prefixes.place(in: $0, from: position - base) }
                guard position < end else { break }
            }
            let byte = pending[position - base]
            position += 1
            look(at: byte, into: &output)
        }
        send(upTo: held, into: &output)
        pending.removeFirst(sent - base)
        base = sent
    }

    /// Whether held bytes may be sent when the stream pauses: they may begin a token, but are few.
    var holdsBack: Bool {
        (sent < base + pending.count || !lineEnds.isEmpty) && percentStart == nil && jsonStart == nil
            && ([literal, percent, json] + base64).allSatisfy { $0.matched <= TokenScrubber.shortPrefix }
    }

    /// The stream pauses: sends a few held bytes. If they turn out to be the beginning of a token, the stream is broken.
    mutating func flush(into output: inout [UInt8]) {
        guard holdsBack else { return }
        send(upTo: base + pending.count, into: &output)
        if !lineEnds.isEmpty { endSplice(isPadded: false, into: &output) }
    }

    /// The stream has ended: the held bytes are not the token.
    mutating func finish(into output: inout [UInt8]) {
        send(upTo: base + pending.count, into: &output)
        endSplice(isPadded: false, into: &output)
        forget()
    }

    /// A text in which the token is replaced; `nil` if the text does not contain it.
    mutating func scrubbed(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        let before = finds
        var output: [UInt8] = []
        feed(text, into: &output)
        finish(into: &output)
        return finds > before ? output : nil
    }

    private var isAtRest: Bool {
        guard literal.matched == 0, base64[0].matched == 0, base64[1].matched == 0, base64[2].matched == 0 else {
            return false
        }
        return !hasEscapes
            || percent.matched == 0 && json.matched == 0 && percentStart == nil && jsonStart == nil
                && base64[3...].allSatisfy { $0.matched == 0 }
    }

    private mutating func forget() {
        literal.forget()
        for index in 0..<3 { base64[index].forget() }
        forgetEscapes()
    }

    private mutating func forgetEscapes() {
        guard hasEscapes else { return }
        hasEscapes = false
        percent.forget()
        json.forget()
        for index in 3..<6 { base64[index].forget() }
        percentStart = nil
        jsonStart = nil
    }

    /// An escape character comes: from here on, the readings of the text differ.
    private mutating func splitReadings() {
        hasEscapes = true
        percent.follow(literal)
        json.follow(literal)
        for index in 0..<3 { base64[index + 3].follow(base64[index]) }
    }

    // MARK: Finding

    /// A find of the token.
    private enum Find {
        case text(from: Int)
        case base64(alignment: Int, from: Int)
    }

    private mutating func look(at byte: UInt8, into output: inout [UInt8]) {
        let index = position - 1
        if !hasEscapes {
            if byte != 0x25, byte != 0x5c {
                if let began = literal.step(byte, at: index) { return found(from: began, into: &output) }
                if case .base64(let alignment, let began)? = stepBase64(byte, at: index, from: 0) {
                    foundBase64(alignment, from: began, into: &output)
                }
                return
            }
            splitReadings()
        }
        if let began = literal.step(byte, at: index) { return found(from: began, into: &output) }
        // Both matchers process each byte, whatever the other finds.
        let first = lookForPercent(byte, index)
        switch first ?? lookForJson(byte, index) {
        case .text(let began): found(from: began, into: &output)
        case .base64(let alignment, let began): foundBase64(alignment, from: began, into: &output)
        case nil: break
        }
    }

    /// Processes a byte after percent-decoding.
    private mutating func stepPercent(_ byte: UInt8, at start: Int) -> Find? {
        if let began = percent.step(byte, at: start) { return .text(from: began) }
        return stepBase64(byte, at: start, from: 0)
    }

    /// Processes a byte after decoding of JSON escapes.
    private mutating func stepJson(_ byte: UInt8, at start: Int) -> Find? {
        if let began = json.step(byte, at: start) { return .text(from: began) }
        return stepBase64(byte, at: start, from: 3)
    }

    private mutating func stepBase64(_ byte: UInt8, at start: Int, from first: Int) -> Find? {
        // Lines of base64 may be broken anywhere. RFC 2045 §6.8.
        if TextBytes.isLineEnd(byte) { return nil }
        let value = Base64Digits.values[Int(byte)]
        for alignment in 0..<3 {
            if let began = base64[first + alignment].step(value, at: start) {
                return .base64(alignment: alignment, from: began)
            }
        }
        return nil
    }

    /// Processes a byte of an escape, or a literal byte.
    private mutating func lookForPercent(_ byte: UInt8, _ index: Int) -> Find? {
        guard let start = percentStart else {
            if byte == 0x25 {
                percentStart = index
                return nil
            }
            return stepPercent(byte, at: index)
        }
        guard Hex.value(byte) != nil else {
            percentStart = nil
            return replayPercent(from: start, byte, index)
        }
        guard index - start == 2, let high = Hex.value(pending[start + 1 - base]),
            let low = Hex.value(byte)
        else { return nil }
        percentStart = nil
        return stepPercent(high << 4 | low, at: start)
    }

    /// The escape turned out to be invalid: its bytes stand for themselves.
    private mutating func replayPercent(from start: Int, _ byte: UInt8, _ index: Int) -> Find? {
        for place in start..<index {
            if let find = stepPercent(pending[place - base], at: place) { return find }
        }
        return lookForPercent(byte, index)
    }

    private mutating func forgetJson() {
        json.forget()
        for index in 3..<6 { base64[index].forget() }
    }

    private mutating func lookForJson(_ byte: UInt8, _ index: Int) -> Find? {
        guard let start = jsonStart else {
            if byte == 0x5c {
                jsonStart = index
                return nil
            }
            return stepJson(byte, at: index)
        }
        if index - start == 1, byte != 0x75 {
            jsonStart = nil
            switch byte {
            case 0x22, 0x2f, 0x5c: return stepJson(byte, at: start)
            case 0x6e, 0x72: return stepJson(0x0a, at: start)
            default:
                // No token needs this escape.
                forgetJson()
                return nil
            }
        }
        if index - start > 1, Hex.value(byte) == nil {
            jsonStart = nil
            forgetJson()
            return lookForJson(byte, index)
        }
        guard index - start == 5 else { return nil }
        jsonStart = nil
        let digits = pending[(start + 2 - base)...(index - base)].compactMap { Hex.value($0) }
        let unit = digits.reduce(UInt16(0)) { $0 << 4 | UInt16($1) }
        guard unit < 0x80 else {
            forgetJson()
            return nil
        }
        return stepJson(UInt8(unit), at: start)
    }

    /// The token lies between `began` and the last processed byte.
    private mutating func found(from began: Int, into output: inout [UInt8]) {
        if began < sent { isBroken = true }
        send(upTo: began, into: &output)
        endSplice(isPadded: false, into: &output)
        output.append(contentsOf: placeholder)
        skip()
    }

    private mutating func foundBase64(_ alignment: Int, from began: Int, into output: inout [UInt8]) {
        guard began >= sent else { return found(from: began, into: &output) }
        // The previous digit contains bits of the token, too.
        let head = alignment > 0 && began > sent ? Base64Digits.values[Int(pending[began - 1 - base])] : 255
        guard alignment == 0 || head != 255 else { return found(from: began, into: &output) }
        let isUrl = pending[(began - base)..<(position - base)].contains { $0 == 0x2d || $0 == 0x5f }
        send(upTo: alignment == 0 ? began : began - 1, into: &output)
        var splice = self.splice ?? Base64Splice(digits: alignment, isUrl: isUrl)
        if alignment > 0 { splice.keep(head, first: alignment == 1 ? 2 : 4, into: &output) }
        splice.replace(
            digits: search.base64[alignment].symbols.count, by: placeholder,
            dropping: 8 * (alignment + search.count) % 6, into: &output)
        self.splice = splice
        skip()
    }

    /// Skips the replaced bytes.
    private mutating func skip() {
        finds += 1
        sent = position
        forget()
    }

    // MARK: Output

    /// The place of the first byte that may belong to a token.
    private var held: Int {
        if isAtRest { return heldAtRest }
        var held = base + pending.count
        if literal.matched > 0 { held = min(held, literal.began) }
        if percent.matched > 0 { held = min(held, percent.began) }
        if json.matched > 0 { held = min(held, json.began) }
        if let percentStart { held = min(held, percentStart) }
        if let jsonStart { held = min(held, jsonStart) }
        for index in base64.indices where base64[index].matched > 0 {
            held = min(held, base64[index].began - (index % 3 == 0 ? 0 : 1))
        }
        return max(sent, held)
    }

    /// The last base64 digit may be the one before the token.
    private var heldAtRest: Int {
        let end = base + pending.count
        guard end > sent, let last = pending.last, Base64Digits.values[Int(last)] != 255 else { return max(sent, end) }
        return end - 1
    }

    private mutating func send(upTo end: Int, into output: inout [UInt8]) {
        guard end > sent else { return }
        while sent < end, splice != nil || dropsPadding {
            send(pending[sent - base], into: &output)
            sent += 1
        }
        output.append(contentsOf: pending[(sent - base)..<(end - base)])
        sent = end
    }

    /// Sends a byte after a token in base64.
    private mutating func send(_ byte: UInt8, into output: inout [UInt8]) {
        if dropsPadding {
            dropsPadding = false
            if byte != 0x3d { output.append(byte) }
            return
        }
        if TextBytes.isLineEnd(byte) {
            // The end of the run, or of one of its lines.
            lineEnds.append(byte)
            return
        }
        let value = Base64Digits.values[Int(byte)]
        if value != 255, lineEnds.isEmpty {
            splice?.append(value, into: &output)
            return
        }
        // Inside a run with line breaks or escapes, the following digits keep their position in their group.
        if value != 255 || byte == 0x5c || byte == 0x25 { splice?.realign(into: &output) }
        endSplice(isPadded: byte == 0x3d, into: &output)
        if byte == 0x3d { dropsPadding = true } else { output.append(byte) }
    }

    private mutating func endSplice(isPadded: Bool, into output: inout [UInt8]) {
        guard splice != nil else { return }
        splice?.finish(isPadded: isPadded, into: &output)
        splice = nil
        output += lineEnds
        lineEnds = []
    }
}

/// A token to search for: the patterns of its forms, made once per token.
public final class TokenSearch: Sendable {
    let literal: SequencePattern
    /// The patterns by the number of bytes before the token in its group of three.
    let base64: [SequencePattern]
    /// Finds where a match may begin.
    let prefixes: TokenPrefixes
    let token: [UInt8]
    var count: Int { token.count }

    /// The minimum length of a token: shorter ones would be found in unrelated text.
    public static let leastToken = 4

    /// `nil` if the token is too short.
    public init?(_ secret: Secret) {
        let token = Array(secret.revealed.utf8)
        guard token.count >= TokenSearch.leastToken else { return nil }
        self.token = token
        literal = SequencePattern(token)
        base64 = (0..<3).map { SequencePattern(Base64Digits.digits(of: token, behind: $0)) }
        // Both alphabets have a digit for each value.
        prefixes = TokenPrefixes(
            [token.map { [$0] }]
                + base64.map { $0.symbols.map { [Base64Digits.usual[Int($0)], Base64Digits.url[Int($0)]] } })
    }
}
