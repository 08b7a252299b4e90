public import Foundation
public import HttpWare

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

// Conversions between the messages of this library and those of URLSession. A conversion copies. If one side does not allow a
// value, the conversion throws or returns `nil`; it never repairs the value. This is a separate product, because
// FoundationNetworking depends on another client, libcurl.

extension HttpRequest {
    /// Converts a request. Throws a `GatewayError` if its URL cannot be sent or its content is a stream, and an
    /// `InvalidFieldValue` if a value is invalid in a field line.
    public init(_ request: URLRequest) throws {
        guard let url = request.url, let method = HttpMethod(request.httpMethod ?? "GET") else {
            throw GatewayError(.gateway, .requestMalformed, "the request has no URL, or an invalid method")
        }
        guard request.httpBodyStream == nil || request.httpBody != nil else {
            throw GatewayError(.gateway, .requestMalformed, "the content is a stream, which cannot be copied")
        }
        // A fragment is never sent. RFC 9110 §7.1.
        let target = url.absoluteString.prefix { $0 != "#" }
        var fields = HttpFields()
        for (name, value) in (request.allHTTPHeaderFields ?? [:]).sorted(by: { $0.key < $1.key }) {
            guard let name = FieldName(name) else {
                throw GatewayError(.gateway, .requestMalformed, "\(name.debugDescription) is not a field name")
            }
            try fields.append(name, value)
        }
        try self.init(method, String(target), fields: fields, content: .bytes(Array(request.httpBody ?? Data())))
    }
}

extension URLRequest {
    /// Converts a request, with its content if that is in memory. `nil` if the request has no absolute URI.
    public init?(_ request: HttpRequest) {
        guard request.host != nil, let url = URL(string: String(decoding: request.targetUri(), as: UTF8.self)) else {
            return nil
        }
        self.init(url: url)
        httpMethod = request.method.name
        for (name, value) in request.fields { addValue(value, forHTTPHeaderField: name) }
        if let bytes = request.content.bytes { httpBody = Data(bytes) }
    }
}

extension HttpResponse {
    /// Converts a response, and adds this content. Throws an `InvalidFieldValue` if a value is invalid in a field line, and a
    /// `GatewayError` if the status or a name is invalid.
    public init(_ response: HTTPURLResponse, content: Data = Data()) throws {
        guard let status = HttpStatus(response.statusCode) else {
            throw GatewayError(.gateway, .responseMalformed, "not a status")
        }
        var fields = HttpFields()
        let lines = response.allHeaderFields.map { ("\($0.key)", "\($0.value)") }
        for (name, value) in lines.sorted(by: { $0.0 < $1.0 }) {
            guard let name = FieldName(name) else {
                throw GatewayError(.gateway, .responseMalformed, "\(name.debugDescription) is not a field name")
            }
            try fields.append(name, value)
        }
        self.init(status, fields: fields, content: .bytes(Array(content)))
    }
}

extension HTTPURLResponse {
    /// Converts the response to a request for that URL, without its content. Several lines with the same name become one, joined
    /// by commas.
    public convenience init?(_ response: HttpResponse, url: URL) {
        var fields: [String: String] = [:]
        for name in Set(response.fields.map { $0.name.lowercased() }) {
            guard let known = FieldName(name) else { return nil }
            fields[known.description] = response.fields.values(of: known).joined(separator: ", ")
        }
        self.init(url: url, statusCode: response.status.code, httpVersion: "HTTP/1.1", headerFields: fields)
    }
}
