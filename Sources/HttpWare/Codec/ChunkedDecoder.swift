/// Takes the chunked transfer coding off, as the bytes come. RFC 9112 §7.1.
///
/// All input is consumed at once: what it must remember between calls is in here. Strict: a size is 1 to 16 hexadecimal
/// digits; only an extension or CRLF may follow it.
struct ChunkedDecoder {
    /// What the next bytes are.
    enum Part: Equatable {
        /// This range of the input is content.
        case content(Range<Int>)
        /// The input is used up and the content goes on.
        case needsMore
        /// The content ended; the input behind this place belongs to the next message.
        case end(Int)
    }

    private enum State: Equatable {
        case size(digits: Int)
        case extensionStart, extensionText, sizeLineFeed
        case content, contentCarriageReturn, contentLineFeed
        case trailers
        case done
    }

    /// The most bytes of chunk extensions in one message: they carry nothing that is passed on.
    static let mostExtensionBytes = 16 * 1024

    private var state = State.size(digits: 0)
    private var left = 0
    private var extensionBytes = 0
    private var trailerBytes: [UInt8] = []
    private var scanner = HeadScanner()
    private var limits: HeadLimits
    private let nominated: NominatedFields?
    /// The trailer fields that may be passed on, once the content ended. RFC 9110 §6.5.1.
    private(set) var trailers = HttpFields()

    /// The limits bound the trailer section as they do a head. Fields that the head's `Connection` names are dropped there.
    init(limits: HeadLimits, nominated: NominatedFields? = nil) {
        self.limits = limits
        self.nominated = nominated
    }

    /// Reads on at `position` of the input.
    mutating func next(_ input: RawSpan, from position: inout Int) throws(ChunkedFault) -> Part {
        while position < input.byteCount {
            let byte = input.byte(at: position)
            switch state {
            case .size(let digits):
                if let value = ByteClass.hexValue(byte) {
                    guard digits < 16, left >> 59 == 0 else { throw .size }
                    left = left << 4 | Int(value)
                    state = .size(digits: digits &+ 1)
                } else {
                    guard digits > 0 else { throw .size }
                    switch byte {
                    case 0x0d: state = .sizeLineFeed
                    case 0x3b: state = .extensionText
                    // Bad white space may only stand before an extension. RFC 9110 §5.6.3.
                    case 0x20, 0x09: state = .extensionStart
                    default: throw .size
                    }
                }
                position &+= 1
            case .extensionStart:
                guard byte == 0x3b || FieldList.isSpace(byte) else { throw .size }
                try countExtension()
                if byte == 0x3b { state = .extensionText }
                position &+= 1
            case .extensionText:
                try countExtension()
                if byte == 0x0d {
                    state = .sizeLineFeed
                } else if !ByteClass.isFieldValue(byte) {
                    throw .extension
                }
                position &+= 1
            case .sizeLineFeed:
                guard byte == 0x0a else { throw .lineEnd }
                position &+= 1
                state = left == 0 ? .trailers : .content
            case .content:
                let end = position &+ min(left, input.byteCount &- position)
                let range = position..<end
                left &-= range.count
                position = end
                if left == 0 { state = .contentCarriageReturn }
                return .content(range)
            case .contentCarriageReturn:
                guard byte == 0x0d else { throw .lineEnd }
                position &+= 1
                state = .contentLineFeed
            case .contentLineFeed:
                guard byte == 0x0a else { throw .lineEnd }
                position &+= 1
                state = .size(digits: 0)
            case .trailers:
                if try readTrailers(input, from: &position) {
                    state = .done
                    return .end(position)
                }
            case .done:
                return .end(position)
            }
        }
        return state == .done ? .end(position) : .needsMore
    }

    private mutating func countExtension() throws(ChunkedFault) {
        extensionBytes &+= 1
        guard extensionBytes <= ChunkedDecoder.mostExtensionBytes else { throw .extension }
    }

    /// Reads on in the trailer section, keeping its bytes until it is whole. True when it is.
    private mutating func readTrailers(_ input: RawSpan, from position: inout Int) throws(ChunkedFault) -> Bool {
        if trailerBytes.isEmpty, input.byteCount &- position >= 2, input.byte(at: position) == 0x0d,
            input.byte(at: position &+ 1) == 0x0a
        {
            position &+= 2
            return true
        }
        let kept = trailerBytes.count
        // Up to the limit: the scanner refuses a section that is not whole by then.
        let end = position &+ min(input.byteCount &- position, max(0, limits.head &- kept))
        input.extracting(position..<end).withUnsafeBytes { trailerBytes.append(contentsOf: $0) }
        let section = trailerBytes
        do {
            guard try scanner.fields(section.span.bytes, into: &trailers, limits: limits) else {
                position = end
                return false
            }
        } catch {
            throw .trailers
        }
        position &+= scanner.position &- kept
        trailers.removeForbiddenTrailers(nominated)
        trailerBytes = []
        return true
    }
}

/// What is wrong with chunked content.
enum ChunkedFault: Error, Equatable {
    case size, `extension`, lineEnd, trailers

    var reason: String {
        switch self {
        case .size: "a chunk size is not 1 to 16 hexadecimal digits"
        case .extension: "a chunk extension is malformed or too long"
        case .lineEnd: "a chunk does not end with CRLF"
        case .trailers: "the trailer section is malformed or too long"
        }
    }
}

extension HttpFields {
    /// What must not stand in a trailer section: framing, routing, credentials, control. RFC 9110 §6.5.1.
    private static let forbiddenTrailers: UInt64 = {
        let fields: [KnownField] = [
            .host, .connection, .contentLength, .transferEncoding, .te, .trailer, .upgrade, .expect, .keepAlive,
            .proxyConnection, .proxyAuthorization, .proxyAuthenticate, .http2Settings, .maxForwards, .authorization,
            .cookie, .setCookie, .contentType, .contentEncoding, .contentRange, .cacheControl, .range, .ifMatch,
            .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .wwwAuthenticate, .location, .vary, .age,
            .expires, .date, .retryAfter, .pragma, .via, .forwarded, .xForwardedFor, .xForwardedProto, .xForwardedHost,
        ]
        return fields.reduce(0) { $0 | $1.bit }
    }()

    /// Removes fields that must not be in a trailer section, and those that the head's `Connection` names, for good.
    mutating func removeForbiddenTrailers(_ nominated: NominatedFields? = nil) {
        for index in lines.indices {
            let known = lines[index].known
            let isForbidden =
                known == .other ? isForbidden(lines[index].name) : known.bit & HttpFields.forbiddenTrailers != 0
            let isNamed = nominated.map { isNominated(lines[index], in: $0) } ?? false
            if isForbidden || isNamed { lines[index].flags |= Line.removed | Line.hopByHop }
        }
    }

    /// Whether the name is one of those by which intermediaries tell whom they forward for, or a twin of one that is forbidden:
    /// the same name with `_` for `-`.
    private func isForbidden(_ range: Range<Int>) -> Bool {
        let name = string(range).lowercased().replacing("_", with: "-")
        return name.hasPrefix("x-forwarded-") || name == "x-real-ip"
            || KnownField.identify(name).bit & HttpFields.forbiddenTrailers != 0
    }
}
