/// A request's target: as received, in its normal form for matching, and as sent upstream. RFC 9112 §3.2, RFC 9110 §7.1.
///
/// One byte buffer holds them all; equal parts share their bytes.
struct RequestTarget: Sendable {
    /// The four forms of RFC 9112 §3.2.
    enum Form: Sendable { case origin, absolute, authority, asterisk }

    /// A range of `bytes`.
    struct Part: Sendable, Equatable {
        var start: UInt32 = 0
        var count: UInt32 = 0

        @inline(__always)
        init() {}
        @inline(__always)
        init(_ range: Range<Int>) {
            start = UInt32(truncatingIfNeeded: range.lowerBound)
            count = UInt32(truncatingIfNeeded: range.count)
        }
        @inline(__always) var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
    }

    var bytes: [UInt8] = []
    var form = Form.origin
    /// The target as in the request line.
    var received = Part()
    /// The host in lower case, without a trailing dot; empty if the request named none.
    var host = Part()
    var port: UInt16?
    /// Whether the scheme of an absolute-form target, or else that of the connection, is https.
    var isSecure = false
    /// The path in its normal form.
    var path = Part()
    /// The path that is sent upstream: as received, unless it contained dot segments or a ware changed it.
    var upstreamPath = Part()
    /// The query without its question mark; meaningful only if `hasQuery`.
    var query = Part()
    var hasQuery = false
    /// The original names, if a ware has changed them.
    private var namesBefore: Names?
    /// The number of changes since it was received.
    private(set) var changes: UInt32 = 0

    /// The parts that conditions compare and wares can change.
    struct Names: Sendable {
        var host: Part
        var port: UInt16?
        var path: Part
        var upstreamPath: Part
        var query: Part
        var hasQuery: Bool
    }

    /// Host, port, path and query as received.
    var receivedNames: Names {
        namesBefore
            ?? Names(
                host: host, port: port, path: path, upstreamPath: upstreamPath, query: query, hasQuery: hasQuery)
    }

    /// Whether no ware has changed it.
    var isAsReceived: Bool { namesBefore == nil }

    /// Restores the state before changes by wares.
    mutating func restoreReceived() {
        guard let names = namesBefore else { return }
        host = names.host
        port = names.port
        path = names.path
        upstreamPath = names.upstreamPath
        query = names.query
        hasQuery = names.hasQuery
        namesBefore = nil
        changes &+= 1
    }

    /// Call this before a ware's change; the bytes stay in place.
    mutating func keepReceivedNames() {
        namesBefore = receivedNames
        changes &+= 1
    }

    mutating func reset() {
        namesBefore = nil
        changes = 0
        if !bytes.isEmpty { bytes.removeAll(keepingCapacity: true) }
        form = .origin
        received = Part()
        host = Part()
        port = nil
        isSecure = false
        path = Part()
        upstreamPath = Part()
        query = Part()
        hasQuery = false
    }

    /// The text of a part. If it is not UTF-8, its bytes beyond ASCII are percent-encoded.
    func string(_ part: Part) -> String {
        bytes.withUnsafeBufferPointer { ReceivedText.target(UnsafeBufferPointer(rebasing: $0[part.range])) }
    }

    /// Appends bytes, and returns their part.
    mutating func add(_ text: some Collection<UInt8>) -> Part {
        let start = bytes.count
        bytes.append(contentsOf: text)
        return Part(start..<bytes.count)
    }

    // MARK: Reading the received target

    /// Parses the target of a request line. `*` is allowed only for OPTIONS: RFC 9112 §3.2.4.
    ///
    /// With `isReverse`, the gateway stands for the origin server, and the path is its own: dot segments are removed, and refused if
    /// they are percent-encoded, because the origin server might read them differently. With `isPassed`, a proxy passes the path on
    /// for its client: "A proxy MUST NOT modify the absolute-path" (RFC 9110 §7.7), so no path is refused.
    mutating func parse(
        _ text: RawSpan, isConnect: Bool, isOptions: Bool = false, isReverse: Bool, isPassed: Bool = false
    ) throws(GatewayError) {
        reset()
        text.withUnsafeBytes { bytes.append(contentsOf: $0) }
        received = Part(0..<bytes.count)
        guard let first = bytes.first else { throw .malformed("the request target is empty") }
        if isConnect {
            form = .authority
            guard try setAuthority(0..<bytes.count), port != nil, port != 0 else {
                throw .malformed("the target of CONNECT is not host:port")
            }
        } else if first == 0x2f {
            try parsePath(from: 0, isReverse: isReverse, isPassed: isPassed)
        } else if bytes.count == 1, first == 0x2a, isOptions {
            form = .asterisk
            path = received
            upstreamPath = received
        } else {
            try parseAbsolute(isOptions: isOptions, isReverse: isReverse, isPassed: isPassed)
        }
    }

    private mutating func parseAbsolute(isOptions: Bool, isReverse: Bool, isPassed: Bool) throws(GatewayError) {
        form = .absolute
        let start: Int
        if hasPrefix("http://") {
            start = 7
        } else if hasPrefix("https://") {
            start = 8
            isSecure = true
        } else {
            throw .malformed("the request target is neither a path nor an http or https URI")
        }
        let end = bytes[start...].firstIndex { $0 == 0x2f || $0 == 0x3f } ?? bytes.count
        guard try setAuthority(start..<end) else { throw .malformed("the request target has no valid authority") }
        if end == received.range.upperBound || bytes[end] == 0x3f {
            // The path is missing: RFC 9112 §3.2.1 sends "/" instead, and §3.2.4 "*" for OPTIONS without a query.
            let hadQuery = end < received.range.upperBound
            path = add(CollectionOfOne(isOptions && !hadQuery ? 0x2a : 0x2f))
            upstreamPath = path
            if hadQuery {
                query = Part((end + 1)..<received.range.upperBound)
                hasQuery = true
            }
        } else {
            try parsePath(from: end, isReverse: isReverse, isPassed: isPassed)
        }
    }

    private mutating func parsePath(from start: Int, isReverse: Bool, isPassed: Bool) throws(GatewayError) {
        let end = received.range.upperBound
        let question = bytes[start..<end].firstIndex(of: 0x3f)
        if let question {
            query = Part((question + 1)..<end)
            hasQuery = true
        }
        path = Part(start..<(question ?? end))
        upstreamPath = path
        var normal: [UInt8] = []
        let outcome = bytes.withUnsafeBufferPointer {
            NormalPath.normalise(UnsafeBufferPointer(rebasing: $0[path.range]), into: &normal, isPassed: isPassed)
        }
        switch outcome {
        case .same: break
        case .refused(let reason): throw .malformed(reason)
        case .changed(let dotSegments, let encodedDotSegments):
            if isReverse && encodedDotSegments { throw .malformed("the path hides dot segments by percent-encoding") }
            path = add(normal)
            if isReverse && dotSegments { upstreamPath = path }
        }
    }

    /// The feature of the received path that servers read differently, in words; `nil` if all of them read it alike.
    var ambiguity: StaticString? {
        guard form == .origin || form == .absolute else { return nil }
        return bytes.withUnsafeBufferPointer { all in
            var text = UnsafeBufferPointer(rebasing: all[received.range])
            if text.first != 0x2f {
                // Absolute form: the path follows the authority.
                guard let scheme = text.firstIndex(of: 0x2f), scheme + 2 <= text.count else { return nil }
                text = UnsafeBufferPointer(rebasing: text[(scheme + 2)...])
                guard let slash = text.firstIndex(where: { $0 == 0x2f || $0 == 0x3f }) else { return nil }
                text = UnsafeBufferPointer(rebasing: text[slash...])
            }
            let end = text.firstIndex(of: 0x3f) ?? text.endIndex
            return NormalPath.ambiguity(of: UnsafeBufferPointer(rebasing: text[..<end]))
        }
    }

    private func hasPrefix(_ prefix: StaticString) -> Bool {
        bytes.count >= prefix.utf8CodeUnitCount
            && (0..<prefix.utf8CodeUnitCount).allSatisfy { ByteClass.lower(bytes[$0]) == prefix.utf8Start[$0] }
    }

    /// Parses the authority in this range of the buffer; false if it is invalid.
    private mutating func setAuthority(_ range: Range<Int>) throws(GatewayError) -> Bool {
        let parsed = bytes.withUnsafeBufferPointer { Authority.parse(UnsafeBufferPointer(rebasing: $0[range])) }
        guard let parsed else { return false }
        port = parsed.port
        let start = bytes.count
        for index in parsed.host { bytes.append(bytes[range.lowerBound + index]) }
        lowerHost(from: start)
        return true
    }

    /// Whether the host in a value, with the port, equals the target's authority.
    func names(_ value: UnsafeBufferPointer<UInt8>, _ range: Range<Int>, _ otherPort: UInt16?) -> Bool {
        if value[range.lowerBound] == 0x5b {
            let text = String(decoding: UnsafeBufferPointer(rebasing: value[range]), as: UTF8.self)
            return otherPort == port && bytes[host.range].elementsEqual(Authority.oneForm(text).utf8)
        }
        guard otherPort == port, range.count == Int(host.count) else { return false }
        for offset in 0..<range.count
        where ByteClass.lower(value[range.lowerBound &+ offset]) != bytes[Int(host.start) &+ offset] { return false }
        return true
    }

    /// Parses the authority in a `Host` field's value; false if it is invalid.
    mutating func setAuthority(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let parsed = Authority.parse(value) else { return false }
        port = parsed.port
        let start = bytes.count
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: value[parsed.host]))
        lowerHost(from: start)
        return true
    }

    /// Sets another host, in the form of an authority.
    mutating func setHost(_ name: String) { host = add(name.utf8) }

    /// Makes the bytes from `start` on the host, in lower case; an IPv6 address in its canonical form.
    private mutating func lowerHost(from start: Int) {
        if bytes[start] == 0x5b {
            let address = Authority.oneForm(String(decoding: bytes[start...], as: UTF8.self))
            bytes.removeSubrange(start...)
            bytes.append(contentsOf: address.utf8)
        }
        host = Part(start..<bytes.count)
        bytes.withUnsafeMutableBufferPointer { all in
            for index in start..<all.count { all[index] = ByteClass.lower(all[index]) }
        }
    }
}
