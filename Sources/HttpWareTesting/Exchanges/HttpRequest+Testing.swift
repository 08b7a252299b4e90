public import HttpWare

extension HttpRequest {
    /// A request for a test, with `Host: example.test` unless the target or the fields name a host. An invalid target
    /// is a mistake in the test and traps.
    public static func make(
        _ method: HttpMethod, _ target: String, fields: HttpFields = HttpFields(), content: HttpContent = .none
    ) -> HttpRequest {
        guard var request = try? HttpRequest(method, target, fields: fields, content: content) else {
            preconditionFailure("not a request target: \(target)")
        }
        if request.host == nil && !request.fields.contains(.host) { request.fields.append(TestHost.line) }
        return request
    }

    /// A GET request for a test; see `make`.
    public static func get(_ target: String, fields: HttpFields = HttpFields()) -> HttpRequest {
        make(.get, target, fields: fields)
    }

    /// A POST request for a test; see `make`.
    public static func post(_ target: String, fields: HttpFields = HttpFields(), content: HttpContent = .none)
        -> HttpRequest
    {
        make(.post, target, fields: fields, content: content)
    }
}

extension HttpContent {
    /// Arbitrary content of `count` bytes.
    public static func bytes(count: Int) -> HttpContent { .bytes([UInt8](repeating: 0x78, count: count)) }

    /// The content as text, if all of it is in memory; bytes that are not UTF-8 become U+FFFD.
    public var text: String? { bytes.map { String(decoding: $0, as: UTF8.self) } ?? (isEmpty ? "" : nil) }
}

private enum TestHost {
    static let line: FieldLine = {
        guard let line = try? FieldLine(.host, "example.test") else { preconditionFailure("not a field value") }
        return line
    }()
}
