/// Writes heads into a buffer that the caller owns. Only this type writes line ends between fields. RFC 9112 §3–§5.
struct HeadEncoder {
    private let base: UnsafeMutableRawPointer
    private let capacity: Int
    /// The number of bytes written.
    private(set) var count = 0
    /// The output exceeded the buffer: its contents are not a valid head.
    private(set) var isOverflown = false

    /// Writes into this memory, which must outlive the encoder.
    init(_ buffer: UnsafeMutableRawBufferPointer) {
        base = buffer.baseAddress!  // the buffers of a loop are never empty
        capacity = buffer.count
    }

    // MARK: Pieces

    @inline(__always)
    mutating func write(_ text: StaticString) {
        write(text.utf8Start, text.utf8CodeUnitCount)
    }

    @inline(__always)
    mutating func write(_ text: String) {
        let utf8 = text.utf8
        if utf8.withContiguousStorageIfAvailable({ write($0.baseAddress, $0.count) }) == nil {
            for byte in utf8 { write(byte: byte) }
        }
    }

    @inline(__always)
    mutating func write(_ bytes: UnsafeRawPointer?, _ length: Int) {
        guard length > 0, let bytes, length <= capacity &- count else {
            isOverflown = isOverflown || length > capacity &- count
            return
        }
        (base + count).copyMemory(from: bytes, byteCount: length)
        count &+= length
    }

    @inline(__always)
    mutating func write(byte: UInt8) {
        guard count < capacity else {
            isOverflown = true
            return
        }
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    /// Writes a number that is not negative in decimal digits.
    @inline(__always)
    mutating func write(_ number: Int) {
        var digits = 1
        var bound = 10
        // A number has at most 19 digits, so a larger bound is never used.
        while digits < 19, number >= bound {
            digits &+= 1
            bound = bound &* 10
        }
        guard capacity &- count >= digits else {
            isOverflown = true
            return
        }
        var rest = UInt(bitPattern: number)
        var index = count &+ digits
        repeat {
            index &-= 1
            base.storeBytes(of: UInt8(truncatingIfNeeded: rest % 10) &+ 0x30, toByteOffset: index, as: UInt8.self)
            rest /= 10
        } while index > count
        count &+= digits
    }

    /// Writes a number in hexadecimal digits, as a chunk size.
    @inline(__always)
    mutating func write(hex number: Int) {
        var shift = (63 &- number.leadingZeroBitCount) & ~3
        if number == 0 { shift = 0 }
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: number >> shift) & 0x0f
            write(byte: digit < 10 ? digit &+ 0x30 : digit &+ 0x57)
            shift &-= 4
        }
    }

    // MARK: Fields

    /// Writes the lines that are part of the message, except the known fields in `skipped`. Adjacent lines that are already in wire
    /// format are copied together.
    mutating func write(_ fields: HttpFields, skipping skipped: UInt64) {
        fields.bytes.withUnsafeBytes { bytes in
            guard let all = bytes.baseAddress else { return }
            var runStart = 0
            var runEnd = 0
            for line in fields.lines {
                guard !line.isRemoved, line.known == .other || line.known.bit & skipped == 0 else { continue }
                if line.flags & HttpFields.Line.exact != 0 {
                    if Int(line.start) != runEnd {
                        write(all + runStart, runEnd &- runStart)
                        runStart = Int(line.start)
                    }
                    runEnd = Int(line.end)
                } else {
                    write(all + runStart, runEnd &- runStart)
                    runStart = 0
                    runEnd = 0
                    write(all + Int(line.start), Int(line.nameCount))
                    write(": ")
                    write(all + Int(line.valueStart), Int(line.valueCount))
                    write("\r\n")
                }
            }
            write(all + runStart, runEnd &- runStart)
        }
    }

    // MARK: Heads

    static let framingFields = KnownField.contentLength.bit | KnownField.transferEncoding.bit | KnownField.hopByHop

    mutating func write(_ framing: ContentFraming, _ fields: HttpFields) {
        switch framing {
        case .none, .untilClose: break
        case .length(let length), .announced(let length):
            write("Content-Length: ")
            write(length)
            write("\r\n")
        case .chunked: write("Transfer-Encoding: chunked\r\n")
        case .asGiven: if let length = fields.statedLength { write(.length(length), fields) }
        }
    }
}

extension HttpFields {
    /// The length in `Content-Length`; `nil` if it is missing or invalid, because a ware may have written it.
    var statedLength: Int? {
        guard present & KnownField.contentLength.bit != 0 else { return nil }
        var facts = HeadFacts()
        for line in lines where line.known == .contentLength && !line.isRemoved {
            let isLength: Void? = try? withValue(line) { value throws(HeadValueFault) in
                try facts.readContentLength(value)
            }
            guard isLength != nil else { return nil }
        }
        return facts.contentLength
    }
}

extension HttpRequest {
    /// The request line and the fields as received, without the fields in `secret`: the content of an answer to TRACE.
    /// RFC 9110 §9.3.8, RFC 9112 §10.1.
    func receivedHead(without secret: [FieldName]) -> String {
        var text = "\(method) \(receivedTarget) HTTP/\(version.number)\r\n"
        for (name, value) in fields.received {
            if let name = FieldName(name), secret.contains(name) { continue }
            text += "\(name): \(value)\r\n"
        }
        return text + "\r\n"
    }
}

extension HeadEncoder {
    /// The parts of a request's head besides its own fields.
    struct RequestOptions {
        var framing = ContentFraming.none
        /// Written as the `Host` field; `nil` keeps the request's own.
        var host: String?
        var closes = false
        var upgrade: String?
        /// The version that the client spoke, for `Via`.
        var via: HttpVersion?
        /// The path of the service's base URL, which precedes the request's path.
        var basePath = ""
        /// The default fields of the service: added if missing.
        var defaults: [FieldLine] = []
        /// Replaces the exchange's request if set.
        var outgoing: OutgoingRequest?
    }

    /// Writes a request's head in origin form. The request is not changed: `inout` avoids copying it out of a class.
    mutating func write(_ request: inout HttpRequest, _ options: RequestOptions) {
        if request.method == .get {
            write("GET ")
        } else {
            write(request.method.name)
            write(byte: 0x20)
        }
        request.target.bytes.withUnsafeBytes { bytes in
            guard let all = bytes.baseAddress else { return }
            if !options.basePath.isEmpty, request.hasPath { write(options.basePath) }
            let path = request.target.upstreamPath
            write(all + Int(path.start), Int(path.count))
            if request.target.hasQuery {
                write(byte: 0x3f)
                write(all + Int(request.target.query.start), Int(request.target.query.count))
            }
        }
        write(" HTTP/1.1\r\n")
        var skipped = HeadEncoder.framingFields
        if let host = options.host {
            write("Host: ")
            write(host)
            write("\r\n")
            skipped |= KnownField.host.bit
        } else if request.fields.firstIndex(of: KnownField.host) == nil {
            // The request came over HTTP/1.0, or was made here. RFC 9112 §3.2: the field is empty without an authority.
            write("Host: ")
            write(request.authority?.description ?? "")
            write("\r\n")
            skipped |= KnownField.host.bit
        }
        write(request.fields, skipping: skipped)
        for line in options.defaults where !request.fields.contains(line.name) {
            guard line.name.known == .other || line.name.known.bit & skipped == 0 else { continue }
            line.wire.withUnsafeBytes { write($0.baseAddress, $0.count) }
        }
        write(options.framing, request.fields)
        if let via = options.via { write(via: via) }
        if request.acceptsTrailers && options.upgrade == nil { write("TE: trailers\r\n") }
        if let upgrade = options.upgrade {
            write(options.closes ? "Connection: upgrade, close\r\nUpgrade: " : "Connection: upgrade\r\nUpgrade: ")
            write(upgrade)
            write("\r\n")
        } else if request.acceptsTrailers {
            write(options.closes ? "Connection: close, TE\r\n" : "Connection: TE\r\n")
        } else if options.closes {
            write("Connection: close\r\n")
        }
        write("\r\n")
    }

    /// The parts of a response's head besides its own fields.
    struct ResponseOptions {
        var framing = ContentFraming.none
        var upgrade: String?
        /// Whether the connection ends after the response.
        var closes = false
        /// Whether the head tells an HTTP/1.0 client that the connection stays open. RFC 9112 §9.3.
        var keepsAlive10 = false
        /// The version that the origin server spoke, for `Via`.
        var via: HttpVersion?
        /// The value of `Date` if the response has none. RFC 9110 §6.6.1.
        var date: UnsafeRawBufferPointer?
    }

    /// Writes a response's head. The response is not changed, as above.
    mutating func write(_ response: inout HttpResponse, _ options: ResponseOptions) {
        if response.status == .ok && response.reason == nil {
            write("HTTP/1.1 200 OK\r\n")
        } else {
            write("HTTP/1.1 ")
            write(response.status.code)
            write(byte: 0x20)
            if let reason = response.reason {
                reason.withUnsafeBytes { write($0.baseAddress, $0.count) }
            } else {
                write(response.status.reasonPhrase)
            }
            write("\r\n")
        }
        write(response.fields, skipping: HeadEncoder.framingFields)
        if let date = options.date, response.fields.firstIndex(of: KnownField.date) == nil {
            write("Date: ")
            write(date.baseAddress, date.count)
            write("\r\n")
        }
        write(options.framing, response.fields)
        if let via = options.via { write(via: via) }
        if let upgrade = options.upgrade {
            write("Connection: upgrade")
            if options.closes { write(", close") } else if options.keepsAlive10 { write(", keep-alive") }
            write("\r\nUpgrade: ")
            write(upgrade)
            write("\r\n")
        } else if options.closes {
            write("Connection: close\r\n")
        } else if options.keepsAlive10 {
            write("Connection: keep-alive\r\n")
        }
        write("\r\n")
    }

    /// Writes our line of `Via`, after the others. RFC 9110 §7.6.3.
    private mutating func write(via version: HttpVersion) {
        switch version {
        case .http11: write("Via: 1.1 httpware\r\n")
        case .http10: write("Via: 1.0 httpware\r\n")
        case .http2: write("Via: 2 httpware\r\n")
        }
    }
}

/// The answer to a client that speaks plain HTTP on a TLS port, and could not read an alert: 400.
/// RFC 9110 §15.5.1.
enum PlainHttpAnswer {
    static let bytes: [UInt8] = {
        let body =
            "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"detail\":\"this port speaks TLS; ask with https\"}\n"
        let head =
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: \(body.utf8.count)\r\n"
            + "Connection: close\r\n\r\n"
        return Array((head + body).utf8)
    }()
}
