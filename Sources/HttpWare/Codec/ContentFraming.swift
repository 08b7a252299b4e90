/// How a message shows where its content ends, decided here for both directions and both versions of HTTP.
/// RFC 9112 §6.3, RFC 9110 §8.6, §9.3.6, RFC 9113 §8.1.1.
enum ContentFraming: Equatable {
    /// No content follows, and no field mentions it.
    case none
    /// `Content-Length` states how much follows.
    case length(Int)
    /// No length is stated: chunks mark the end in HTTP/1.1, frames in HTTP/2.
    case chunked
    /// No length is stated: the content ends where the connection does.
    case untilClose
    /// No content follows. `Content-Length` states how long the content of a GET would be (HEAD, 304).
    case announced(Int)
    /// No content follows. `Content-Length` stays as it is in the fields (HEAD, 304).
    case asGiven

    /// Whether content follows the head, even if it has no bytes.
    @inline(__always)
    var hasContent: Bool {
        switch self {
        case .length, .chunked, .untilClose: true
        case .none, .announced, .asGiven: false
        }
    }

    /// How much content follows the head.
    @inline(__always)
    var extent: HttpContent.Extent {
        switch self {
        case .length(let length): .length(length)
        case .chunked, .untilClose: .unknown
        case .none, .announced, .asGiven: .none
        }
    }

    /// The number of bytes that follow the head, if it is known.
    @inline(__always)
    var contentLength: Int? {
        switch self {
        case .length(let length): length
        case .chunked, .untilClose: nil
        case .none, .announced, .asGiven: 0
        }
    }
}

// MARK: Received messages

extension ContentFraming {
    /// The framing of a request received over HTTP/1. RFC 9112 §6.3.
    @inline(__always)
    static func ofRequest(
        _ facts: HeadFacts, method: HttpMethod, version: HttpVersion
    ) throws(FramingFault) -> ContentFraming {
        let framing: ContentFraming
        if facts.hasTransferEncoding {
            try facts.checkTransferEncoding(version)
            framing = .chunked
        } else if let length = facts.contentLength, length > 0 {
            framing = .length(length)
        } else {
            return .none
        }
        // RFC 9110 §9.3.6, §9.3.8.
        if method == .connect { throw .contentOfConnect }
        if method == .trace { throw .contentOfTrace }
        return framing
    }

    /// The framing of a request received over HTTP/2. A request that ends with its head or opens a tunnel has no content.
    /// RFC 9113 §8.1.1, §8.5.
    @inline(__always)
    static func ofRequest(
        _ facts: HeadFacts, method: HttpMethod, endsStream: Bool
    ) throws(FramingFault) -> ContentFraming {
        if endsStream || method == .connect {
            guard facts.contentLength ?? 0 == 0 else { throw .contentMissing }
            return .none
        }
        if method == .trace { throw .contentOfTrace }
        return facts.contentLength.map { .length($0) } ?? .chunked
    }

    /// The framing of a response received over HTTP/1, to a request with that method. RFC 9112 §6.3.
    @inline(__always)
    static func ofResponse(
        _ facts: HeadFacts, status: HttpStatus, to method: HttpMethod, version: HttpVersion
    ) throws(FramingFault) -> ContentFraming {
        if facts.hasTransferEncoding { try facts.checkTransferEncoding(version) }
        if status.hasNoContent(to: method) || status.opensTunnel(to: method) { return .none }
        if facts.isChunked { return .chunked }
        guard let length = facts.contentLength else { return .untilClose }
        return length == 0 ? .none : .length(length)
    }

    /// The framing of a response received over HTTP/2, to a request with that method. RFC 9113 §8.1.1.
    @inline(__always)
    static func ofResponse(
        _ facts: HeadFacts, status: HttpStatus, to method: HttpMethod, endsStream: Bool
    ) throws(FramingFault) -> ContentFraming {
        if status.hasNoContent(to: method) { return .none }
        if endsStream {
            guard facts.contentLength ?? 0 == 0 else { throw .contentMissing }
            return .none
        }
        return facts.contentLength.map { .length($0) } ?? .chunked
    }
}

// MARK: Sent messages

extension ContentFraming {
    /// The framing of a request that is sent. A request without content gets `Content-Length: 0` if its method usually has content, or
    /// if the client sent a length. RFC 9110 §8.6.
    ///
    /// - Parameters:
    ///   - statesLength: whether the request came with a `Content-Length`.
    ///   - keepsLength: whether the content is sent with the length that `extent` names.
    @inline(__always)
    static func ofRequest(
        sending extent: HttpContent.Extent, method: HttpMethod, statesLength: Bool,
        keepsLength: @autoclosure () -> Bool = true
    ) -> ContentFraming {
        switch extent {
        case .none:
            statesLength || method == .post || method == .put || method == .patch ? .length(0) : .none
        case .length(let length): keepsLength() ? .length(length) : .chunked
        case .unknown: .chunked
        }
    }

    /// The framing of a response that is sent to a request with that method and version. RFC 9110 §8.6, RFC 9112 §6.1, §6.3.
    @inline(__always)
    static func ofResponse(
        sending extent: HttpContent.Extent, status: HttpStatus, to method: HttpMethod, version: HttpVersion
    ) -> ContentFraming {
        if status.code < 200 || status == .noContent || status.opensTunnel(to: method) { return .none }
        if method == .head || status == .notModified {
            if case .length(let length) = extent { return .announced(length) }
            return .asGiven
        }
        return switch extent {
        case .none: .length(0)
        case .length(let length): .length(length)
        // HTTP/1.0 has no chunks.
        case .unknown: version >= .http11 ? .chunked : .untilClose
        }
    }
}

extension HttpStatus {
    /// Whether a response with this status to that method ends with its head, whatever its fields say. RFC 9112 §6.3.
    @inline(__always)
    func hasNoContent(to method: HttpMethod) -> Bool { method == .head || neverHasContent }

    /// Whether the connection becomes a tunnel after the head. RFC 9110 §9.3.6.
    @inline(__always)
    func opensTunnel(to method: HttpMethod) -> Bool { method == .connect && code / 100 == 2 }
}

extension HttpFields {
    /// Whether `Content-Length` is among the fields.
    @inline(__always)
    var statesLength: Bool { present & KnownField.contentLength.bit != 0 }
}

extension HeadFacts {
    /// Whether the fields announce content.
    @inline(__always)
    var announcesContent: Bool { isChunked || contentLength ?? 0 > 0 }

    /// Refuses every `Transfer-Encoding` except a single `chunked`. RFC 9112 §6.1.
    fileprivate func checkTransferEncoding(_ version: HttpVersion) throws(FramingFault) {
        guard version >= .http11 else { throw .transferEncodingInHttp10 }
        guard contentLength == nil else { throw .lengthAndTransferEncoding }
        guard isChunked else { throw .notChunkedAtEnd }
        guard !otherCodings else { throw .otherCoding }
    }
}

/// The reason why the end of a message's content is uncertain.
enum FramingFault: Error {
    case transferEncodingInHttp10, lengthAndTransferEncoding, notChunkedAtEnd, otherCoding
    case contentOfConnect, contentOfTrace
    /// A length is stated, but the HTTP/2 stream ends without content.
    case contentMissing

    var reason: StaticString {
        switch self {
        case .transferEncodingInHttp10: "Transfer-Encoding in an HTTP/1.0 request"
        case .lengthAndTransferEncoding: "both Transfer-Encoding and Content-Length"
        case .notChunkedAtEnd: "Transfer-Encoding does not end with one chunked"
        case .otherCoding: "a transfer coding other than chunked"
        case .contentOfConnect: "CONNECT has no content"
        case .contentOfTrace: "TRACE has no content"
        case .contentMissing: "content is announced and does not come"
        }
    }

    /// The error for a request with this fault.
    var inRequest: GatewayError {
        switch self {
        // RFC 9112 §6.1: the coding is not implemented here.
        case .otherCoding: GatewayError(.downstream, .transferCodingUnsupported, "\(reason)")
        default: .malformed("\(reason)")
        }
    }

    /// The error for a response with this fault.
    var inResponse: GatewayError {
        switch self {
        case .transferEncodingInHttp10: .badResponse("Transfer-Encoding in an HTTP/1.0 response")
        case .notChunkedAtEnd, .otherCoding: .badResponse("a transfer coding other than one chunked at the end")
        default: .badResponse("\(reason)")
        }
    }
}

/// A fault in a field that the framing or the connection depends on.
enum HeadValueFault: Error {
    case contentLength, transferEncoding, connection

    var reason: String {
        switch self {
        case .contentLength: "Content-Length is not one number"
        case .transferEncoding: "\(FramingFault.notChunkedAtEnd.reason)"
        case .connection:
            "Connection names more than \(HttpFields.mostNominated) fields, or names of more than \(ByteCount(bytes: HttpFields.mostNominatedBytes)) together"
        }
    }

    /// The error for a request with this fault. RFC 6585 §5: 431 also if "a single header field is at fault".
    var inRequest: GatewayError {
        self == .connection ? GatewayError(.downstream, .requestHeadTooLarge, reason) : .malformed(reason)
    }

    /// The error for a response with this fault.
    var inResponse: GatewayError {
        self == .connection ? GatewayError(.upstream, .responseHeadTooLarge, reason) : .badResponse(reason)
    }
}
