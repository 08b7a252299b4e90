import CNghttp2

/// The fields of one head in the form that libnghttp2 takes: it copies them when they are submitted, with names in lower case.
///
/// Text that is not already in the message is written to separate memory; the sessions of a loop share one instance.
struct Http2Lines: ~Copyable {
    private var lines: UnsafeMutablePointer<nghttp2_nv>
    private var capacity = 64
    private(set) var count = 0
    private var text: UnsafeMutablePointer<UInt8>
    private var textCapacity = 1024
    private var textCount = 0

    init() {
        lines = .allocate(capacity: capacity)
        text = .allocate(capacity: textCapacity)
    }

    deinit {
        lines.deallocate()
        text.deallocate()
    }

    /// Begins a head with at most this many lines and this many bytes of separate text.
    mutating func beginHead(lines most: Int, text bytes: Int) {
        count = 0
        textCount = 0
        if most > capacity {
            lines.deallocate()
            capacity = most
            lines = .allocate(capacity: most)
        }
        if bytes > textCapacity {
            text.deallocate()
            textCapacity = bytes
            text = .allocate(capacity: bytes)
        }
    }

    /// The lines, for one call.
    var first: UnsafePointer<nghttp2_nv> { UnsafePointer(lines) }

    @inline(__always)
    private mutating func add(
        _ name: UnsafeRawPointer, _ nameCount: Int, _ value: UnsafeRawPointer, _ valueCount: Int, flags: UInt8 = 0
    ) {
        precondition(count < capacity, "more lines than were announced")
        lines[count] = nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name.assumingMemoryBound(to: UInt8.self)),
            value: UnsafeMutablePointer(mutating: value.assumingMemoryBound(to: UInt8.self)), namelen: nameCount,
            valuelen: valueCount, flags: flags)
        count &+= 1
    }

    @inline(__always)
    mutating func add(_ name: StaticString, _ value: StaticString) {
        add(name.utf8Start, name.utf8CodeUnitCount, value.utf8Start, value.utf8CodeUnitCount)
    }

    @inline(__always)
    mutating func add(_ name: StaticString, _ value: UnsafeRawBufferPointer) {
        guard let base = value.baseAddress else { return add(name, "") }
        add(name.utf8Start, name.utf8CodeUnitCount, base, value.count)
    }

    /// Adds a line whose value `body` writes.
    mutating func add(_ name: StaticString, write body: (inout Http2Lines) -> Void) {
        let start = textCount
        body(&self)
        add(name.utf8Start, name.utf8CodeUnitCount, text + start, textCount &- start)
    }

    mutating func add(_ name: StaticString, _ number: Int) {
        add(name) { lines in
            var digits = 1
            var rest = number
            while rest >= 10 {
                rest /= 10
                digits &+= 1
            }
            precondition(lines.textCapacity &- lines.textCount >= digits, "more text than was announced")
            lines.textCount &+= digits
            rest = number
            for place in 1...digits {
                lines.text[lines.textCount &- place] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
                rest /= 10
            }
        }
    }

    /// Adds the three digits of a status.
    mutating func add(status: HttpStatus) {
        if status == .ok { return add(":status", "200") }
        add(":status", status.code)
    }

    mutating func write(byte: UInt8) {
        precondition(textCount < textCapacity, "more text than was announced")
        text[textCount] = byte
        textCount &+= 1
    }

    mutating func write(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        precondition(textCapacity &- textCount >= bytes.count, "more text than was announced")
        UnsafeMutableRawPointer(text + textCount).copyMemory(from: base, byteCount: bytes.count)
        textCount &+= bytes.count
    }

    mutating func write(_ string: String) {
        for byte in string.utf8 { write(byte: byte) }
    }

    /// Adds the lines of a message, except the known fields in `skipped`. Their memory is `bytes`, that of the fields.
    mutating func add(_ fields: borrowing HttpFields, in bytes: UnsafeRawBufferPointer, skipping skipped: UInt64) {
        guard let base = bytes.baseAddress else { return }
        for line in fields.lines {
            guard !line.isRemoved, line.known == .other || line.known.bit & skipped == 0 else { continue }
            // Credentials must not enter the compression's table. RFC 7541 §7.1.3.
            let isSecret = line.known == .authorization || line.known == .proxyAuthorization
            add(
                base + Int(line.start), Int(line.nameCount), base + Int(line.valueStart), Int(line.valueCount),
                flags: isSecret ? UInt8(truncatingIfNeeded: NGHTTP2_NV_FLAG_NO_INDEX.rawValue) : 0)
        }
    }

    /// Adds a prepared line.
    mutating func add(_ line: FieldLine) {
        let name = line.name.text.utf8.count
        let start = text + textCount
        line.wire.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[..<name])) }
        let value = text + textCount
        line.wire.withUnsafeBytes { write(UnsafeRawBufferPointer(rebasing: $0[(name + 2)..<($0.count - 2)])) }
        add(start, name, value, text + textCount - value)
    }
}

extension Http2Lines {
    /// Adds the field for the content's length, if there is one.
    private mutating func add(_ framing: ContentFraming, _ fields: borrowing HttpFields) {
        switch framing {
        case .none, .chunked, .untilClose: break
        case .length(let length), .announced(let length): add("content-length", length)
        case .asGiven: if let length = fields.statedLength { add("content-length", length) }
        }
    }

    /// Adds our line of `Via`. RFC 9110 §7.6.3.
    private mutating func add(via version: HttpVersion) {
        switch version {
        case .http10: add("via", "1.0 httpware")
        case .http11: add("via", "1.1 httpware")
        case .http2: add("via", "2 httpware")
        }
    }

    /// Calls `body` with the lines of a response's head.
    mutating func withResponse(
        _ response: inout HttpResponse, _ options: HeadEncoder.ResponseOptions,
        _ body: (borrowing Http2Lines) -> Int32
    ) -> Int32 {
        beginHead(lines: response.fields.lines.count + 8, text: 64)
        return response.fields.bytes.withUnsafeBytes { bytes in
            add(status: response.status)
            add(response.fields, in: bytes, skipping: HeadEncoder.framingFields)
            if let date = options.date, response.fields.firstIndex(of: KnownField.date) == nil { add("date", date) }
            add(options.framing, response.fields)
            if let via = options.via { add(via: via) }
            return body(self)
        }
    }

    /// Calls `body` with the lines of a request's head. RFC 9113 §8.3.1.
    mutating func withRequest(
        _ request: inout HttpRequest, _ options: HeadEncoder.RequestOptions, isSecure: Bool,
        _ body: (borrowing Http2Lines) -> Int32
    ) -> Int32 {
        let host = request.fields.firstIndex(of: KnownField.host)
        beginHead(
            lines: request.fields.lines.count + options.defaults.count + 12,
            text: request.target.bytes.count + options.basePath.utf8.count + (options.host?.utf8.count ?? 0)
                + (options.upgrade?.utf8.count ?? 0)
                + options.defaults.reduce(0) { $0 + $1.wire.count } + 64)
        return request.target.bytes.withUnsafeBytes { target in
            request.fields.bytes.withUnsafeBytes { bytes in
                var method = request.method.name
                return method.withUTF8 { method in
                    add(":method", UnsafeRawBufferPointer(method))
                    // RFC 8441 §4.
                    if let upgrade = options.upgrade, request.method == .connect {
                        add(":protocol") { $0.write(upgrade) }
                    }
                    add(":scheme", isSecure ? "https" : "http")
                    if let given = options.host {
                        add(":authority") { $0.write(given) }
                    } else if let host {
                        add(":authority", UnsafeRawBufferPointer(rebasing: bytes[request.fields.lines[host].value]))
                    }
                    let path = UnsafeRawBufferPointer(rebasing: target[request.target.upstreamPath.range])
                    if options.basePath.isEmpty, !request.target.hasQuery {
                        add(":path", path)
                    } else {
                        let query = UnsafeRawBufferPointer(rebasing: target[request.target.query.range])
                        let hasPath = request.hasPath
                        let hasQuery = request.target.hasQuery
                        add(":path") { lines in
                            if hasPath { lines.write(options.basePath) }
                            lines.write(path)
                            if hasQuery {
                                lines.write(byte: 0x3f)
                                lines.write(query)
                            }
                        }
                    }
                    let skipped = HeadEncoder.framingFields | KnownField.host.bit
                    add(request.fields, in: bytes, skipping: skipped)
                    for line in options.defaults where !request.fields.contains(line.name) {
                        guard line.name.known == .other || line.name.known.bit & skipped == 0 else { continue }
                        add(line)
                    }
                    add(options.framing, request.fields)
                    if let via = options.via { add(via: via) }
                    if request.acceptsTrailers { add("te", "trailers") }
                    return body(self)
                }
            }
        }
    }

    /// Calls `body` with the lines of a trailer section.
    mutating func withTrailers(_ trailers: borrowing HttpFields, _ body: (borrowing Http2Lines) -> Int32) -> Int32 {
        beginHead(lines: trailers.lines.count, text: 0)
        return trailers.bytes.withUnsafeBytes { bytes in
            add(trailers, in: bytes, skipping: HeadEncoder.framingFields)
            return body(self)
        }
    }
}
