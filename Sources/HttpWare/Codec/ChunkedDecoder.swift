/// Removes the chunked transfer coding as the bytes arrive. RFC 9112 §7.1.
///
/// All input is consumed at once; the decoder keeps all state between calls. It is strict: a size is hexadecimal digits of less than
/// 64 bits, followed only by an extension or CRLF.
struct ChunkedDecoder {
    /// The meaning of the next bytes.
    enum Part: Equatable {
        /// This range of the input is content.
        case content(Range<Int>)
        /// The input is used up and the content continues.
        case needsMore
        /// The content ended; the input after this place belongs to the next message.
        case end(Int)
    }

    private enum State: Equatable {
        case size(digits: Int)
        case extensionStart, extensionText, sizeLineFeed
        case content, contentCarriageReturn, contentLineFeed
        case trailers
        case done
    }

    /// The maximum number of digits of a chunk size. Zeros before its value have no limit in the grammar.
    static let mostSizeDigits = 256
    /// The maximum number of bytes of chunk extensions in one message: they are never forwarded.
    static let mostExtensionBytes = 16 * 1024

    private var state = State.size(digits: 0)
    private var left = 0
    private var extensionBytes = 0
    private var trailerBytes: [UInt8] = []
    private var scanner = HeadScanner()
    private var limits: HeadLimits
    private let nominated: NominatedFields?
    /// The trailer fields that may be forwarded, once the content has ended. RFC 9110 §6.5.1.
    private(set) var trailers = HttpFields()

    /// The limits apply to the trailer section as they do to a head. Fields that the head's `Connection` names are dropped there.
    init(limits: HeadLimits, nominated: NominatedFields? = nil) {
        self.limits = limits
        self.nominated = nominated
    }

    /// Continues reading at `position` of the input.
    mutating func next(_ input: RawSpan, from position: inout Int) throws(ChunkedFault) -> Part {
        while position < input.byteCount {
            let byte = input.byte(at: position)
            switch state {
            case .size(let digits):
                if let value = Hex.value(byte) {
                    guard left >> 59 == 0 else { throw .sizeOverflow }
                    guard digits < ChunkedDecoder.mostSizeDigits else { throw .sizeDigits }
                    left = left << 4 | Int(value)
                    state = .size(digits: digits &+ 1)
                } else {
                    guard digits > 0 else { throw .size }
                    switch byte {
                    case 0x0d: state = .sizeLineFeed
                    case 0x3b: state = .extensionText
                    // Bad white space is allowed only before an extension. RFC 9110 §5.6.3.
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
        guard extensionBytes <= ChunkedDecoder.mostExtensionBytes else { throw .extensionBytes }
    }

    /// Continues reading the trailer section, and keeps its bytes until it is complete. Returns whether it is.
    private mutating func readTrailers(_ input: RawSpan, from position: inout Int) throws(ChunkedFault) -> Bool {
        if trailerBytes.isEmpty, input.byteCount &- position >= 2, input.byte(at: position) == 0x0d,
            input.byte(at: position &+ 1) == 0x0a
        {
            position &+= 2
            return true
        }
        let kept = trailerBytes.count
        // Up to the limit: the scanner refuses a section that is still incomplete there.
        let end = position &+ min(input.byteCount &- position, max(0, limits.head &- kept))
        input.extracting(position..<end).withUnsafeBytes { trailerBytes.append(contentsOf: $0) }
        let section = trailerBytes
        do {
            guard try scanner.fields(section.span.bytes, into: &trailers, limits: limits) else {
                position = end
                return false
            }
        } catch {
            throw .trailers(error)
        }
        position &+= scanner.position &- kept
        trailers.removeForbiddenTrailers(nominated)
        trailerBytes = []
        return true
    }
}

/// A fault in chunked content.
enum ChunkedFault: Error, Equatable {
    case size, sizeOverflow, sizeDigits, `extension`, extensionBytes, lineEnd
    case trailers(HeadFault)

    private var reason: String {
        switch self {
        case .size: "a chunk size is not a hexadecimal number"
        case .sizeOverflow: "a chunk size is 2^63 bytes or more"
        case .sizeDigits: "a chunk size has more than \(ChunkedDecoder.mostSizeDigits) digits"
        case .extension: "a chunk extension holds a control character"
        case .extensionBytes:
            "the chunk extensions are larger than \(ByteCount(bytes: ChunkedDecoder.mostExtensionBytes)) together"
        case .lineEnd: "a chunk does not end with CRLF"
        case .trailers: "the trailer section is malformed"
        }
    }

    /// The error for a request with this fault. If the trailer section exceeds a limit, it names the limit, its value and its key.
    func inRequest(_ limits: HeadLimits) -> GatewayError {
        if case .trailers(let fault) = self { fault.inRequest(limits, section: .trailers) } else { .malformed(reason) }
    }

    /// The error for a response with this fault.
    func inResponse(_ limits: HeadLimits) -> GatewayError {
        if case .trailers(let fault) = self {
            fault.inResponse(limits, section: .trailers)
        } else {
            .badResponse(reason)
        }
    }
}

extension HttpFields {
    /// Fields that are forbidden in a trailer section: framing, routing, credentials, control. RFC 9110 §6.5.1.
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

    /// Removes fields that are forbidden in a trailer section, and fields that the head's `Connection` names. They cannot be restored.
    mutating func removeForbiddenTrailers(_ nominated: NominatedFields? = nil) {
        for index in lines.indices {
            let known = lines[index].known
            let isForbidden =
                known == .other ? isForbidden(lines[index].name) : known.bit & HttpFields.forbiddenTrailers != 0
            let isNamed = nominated.map { isNominated(lines[index], in: $0) } ?? false
            if isForbidden || isNamed { lines[index].flags |= Line.removed | Line.hopByHop }
        }
    }

    /// Whether the name is a field in which intermediaries name their client, or a twin of a forbidden field:
    /// the same name with `_` for `-`.
    private func isForbidden(_ range: Range<Int>) -> Bool {
        let name = string(range).lowercased().replacing("_", with: "-")
        return name.hasPrefix("x-forwarded-") || name == "x-real-ip"
            || KnownField.identify(name).bit & HttpFields.forbiddenTrailers != 0
    }
}
