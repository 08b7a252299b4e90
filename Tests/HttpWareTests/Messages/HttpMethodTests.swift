import Testing

@testable import HttpWare

@Suite struct HttpMethodTests {
    /// IANA's *HTTP Method Registry*: name, safe, idempotent.
    private static let registry: [(String, Bool, Bool)] = [
        ("ACL", false, true), ("BASELINE-CONTROL", false, true), ("BIND", false, true), ("CHECKIN", false, true),
        ("CHECKOUT", false, true), ("CONNECT", false, false), ("COPY", false, true), ("DELETE", false, true),
        ("GET", true, true), ("HEAD", true, true), ("LABEL", false, true), ("LINK", false, true),
        ("LOCK", false, false),
        ("MERGE", false, true), ("MKACTIVITY", false, true), ("MKCALENDAR", false, true), ("MKCOL", false, true),
        ("MKREDIRECTREF", false, true), ("MKWORKSPACE", false, true), ("MOVE", false, true), ("OPTIONS", true, true),
        ("ORDERPATCH", false, true), ("PATCH", false, false), ("POST", false, false), ("PRI", true, true),
        ("PROPFIND", true, true), ("PROPPATCH", false, true), ("PUT", false, true), ("QUERY", true, true),
        ("REBIND", false, true), ("REPORT", true, true), ("SEARCH", true, true), ("TRACE", true, true),
        ("UNBIND", false, true), ("UNCHECKOUT", false, true), ("UNLINK", false, true), ("UNLOCK", false, true),
        ("UPDATE", false, true), ("UPDATEREDIRECTREF", false, true), ("VERSION-CONTROL", false, true),
    ]

    @Test(arguments: registry)
    func `a method is safe and idempotent as the registry says, RFC 9110 §16.1`(
        name: String, isSafe: Bool, isIdempotent: Bool
    ) throws {
        let method = try #require(HttpMethod(name))
        #expect(method.isSafe == isSafe && method.isIdempotent == isIdempotent)
    }

    @Test(arguments: ["query", "Get", "PROPFINDX", "X", "*", "PURGE"])
    func `a method that is not registered is neither, RFC 9110 §9.2`(name: String) throws {
        let method = try #require(HttpMethod(name))
        #expect(!method.isSafe && !method.isIdempotent)
    }

    @Test func `a method that was read and one that was written are the same`() throws {
        let request = Array("QUERY".utf8)
        let read = RequestHeadDecoder.method(request.span.bytes, 0, request.count)
        #expect(read == .query && read.isSafe && HttpMethod("QUERY") == .query)
        #expect(read != .get && HttpMethod("QUERX") != .query)
    }
}
