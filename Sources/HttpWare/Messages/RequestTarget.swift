/// A request's target: as received, in its normal form for matching, and as it goes upstream. RFC 9112 §3.2, RFC 9110 §7.1.
///
/// One byte buffer holds them all; parts that are equal share their bytes.
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
    /// As it stood in the request line.
    var received = Part()
    /// The host in lower case, without a trailing dot; empty when the request named none.
    var host = Part()
    var port: UInt16?
    /// The scheme of an absolute-form target, else that of the connection.
    var isSecure = false
    /// The path in its normal form.
    var path = Part()
    /// The path that goes upstream: as received, unless it held dot segments or a ware changed it.
    var upstreamPath = Part()
    /// The query without its question mark; meaningful if `hasQuery`.
    var query = Part()
    var hasQuery = false
    /// What a ware changed since, as it was.
    private var namesBefore: Names?
    /// Counts the changes since it was received.
    private(set) var changes: UInt32 = 0

    /// What conditions compare, and what wares can change.
    struct Names: Sendable {
        var host: Part
        var port: UInt16?
        var path: Part
        var upstreamPath: Part
        var query: Part
        var hasQuery: Bool
    }

    /// Host, port, path and query as they were received.
    var receivedNames: Names {
        namesBefore
            ?? Names(
                host: host, port: port, path: path, upstreamPath: upstreamPath, query: query, hasQuery: hasQuery)
    }

    /// Whether no ware changed it.
    var isAsReceived: Bool { namesBefore == nil }

    /// Becomes what it was before wares changed it.
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

    /// To be called before a ware's change; the bytes stay where they are.
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

    func string(_ part: Part) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0[part.range], as: UTF8.self) }
    }

    /// Appends bytes that a part will name.
    mutating func add(_ text: some Collection<UInt8>) -> Part {
        let start = bytes.count
        bytes.append(contentsOf: text)
        return Part(start..<bytes.count)
    }

    // MARK: Reading what was received

    /// Takes the target of a request line apart. `isReverse` refuses dot segments that percent-encoding hides, which the
    /// origin server might see otherwise than we do. Only OPTIONS may ask for `*`, RFC 9112 §3.2.4.
    mutating func parse(_ text: RawSpan, isConnect: Bool, isOptions: Bool = false, isReverse: Bool) throws(GatewayError)
    {
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
            try parsePath(from: 0, isReverse: isReverse)
        } else if bytes.count == 1, first == 0x2a, isOptions {
            form = .asterisk
            path = received
            upstreamPath = received
        } else {
            try parseAbsolute(isOptions: isOptions, isReverse: isReverse)
        }
    }

    private mutating func parseAbsolute(isOptions: Bool, isReverse: Bool) throws(GatewayError) {
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
            // No path: RFC 9112 §3.2.1 sends "/" in its place, and §3.2.4 "*" with OPTIONS and no query.
            let hadQuery = end < received.range.upperBound
            path = add(CollectionOfOne(isOptions && !hadQuery ? 0x2a : 0x2f))
            upstreamPath = path
            if hadQuery {
                query = Part((end + 1)..<received.range.upperBound)
                hasQuery = true
            }
        } else {
            try parsePath(from: end, isReverse: isReverse)
        }
    }

    private mutating func parsePath(from start: Int, isReverse: Bool) throws(GatewayError) {
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
            NormalPath.normalise(UnsafeBufferPointer(rebasing: $0[path.range]), into: &normal)
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

    /// What servers read differently in the path as it was received, in words; `nil` if all of them take it for the same path.
    var ambiguity: StaticString? {
        guard form == .origin || form == .absolute else { return nil }
        return bytes.withUnsafeBufferPointer { all in
            var text = UnsafeBufferPointer(rebasing: all[received.range])
            if text.first != 0x2f {
                // Absolute form: the path begins behind the authority.
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

    /// Takes the authority from these bytes of the buffer; false when they are none.
    private mutating func setAuthority(_ range: Range<Int>) throws(GatewayError) -> Bool {
        let parsed = bytes.withUnsafeBufferPointer { Authority.parse(UnsafeBufferPointer(rebasing: $0[range])) }
        guard let parsed else { return false }
        port = parsed.port
        let start = bytes.count
        for index in parsed.host { bytes.append(bytes[range.lowerBound + index]) }
        lowerHost(from: start)
        return true
    }

    /// Whether that host in a value, with the port, is the one that the target names.
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

    /// Takes the authority from a `Host` field's value; false when it is none.
    mutating func setAuthority(_ value: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let parsed = Authority.parse(value) else { return false }
        port = parsed.port
        let start = bytes.count
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: value[parsed.host]))
        lowerHost(from: start)
        return true
    }

    /// Names another host, which is written as an authority is.
    mutating func setHost(_ name: String) { host = add(name.utf8) }

    /// The host is what was appended from there, in lower case; an IPv6 address in its one form.
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
