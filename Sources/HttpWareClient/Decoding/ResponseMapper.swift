import FoundationEssentials

/// Converts responses to values: checks the media type, decodes the content, and reports exactly what is wrong.
public struct ResponseMapper: Sendable {
    /// Decodes the content.
    public var decoder: any ModelDecoder

    public init(decoder: any ModelDecoder = JsonCoder()) { self.decoder = decoder }

    /// The value of the content. Throws an `HttpError` with the position of the mistake and the beginning of the
    /// content.
    public func map<Model: Decodable>(
        _ content: [UInt8], of response: HttpResponse, to type: Model.Type = Model.self
    ) throws(HttpError) -> Model {
        if let optional = type as? any OptionalResponse.Type {
            let value = try optional.map(content, of: response, by: self)
            // The value belongs to `Model`, because the type is an optional.
            if let model = value as? Model { return model }
        }
        if type == NoContent.self, let empty = NoContent() as? Model { return empty }
        if type == RawContent.self, let raw = RawContent(bytes: content) as? Model { return raw }
        if type == String.self, let text = String(decoding: content, as: UTF8.self) as? Model { return text }
        if type == Data.self, let data = Data(content) as? Model { return data }
        try check(response)
        do {
            return try decoder.decode(type, from: content)
        } catch {
            let reason =
                content.isEmpty
                ? "the response has no content, but \(type) is expected; \(type)? or NoContent accepts that"
                : "the content is not \(type)"
            var failure = HttpError(.upstream, .decoding, .decoding, reason, underlying: error)
            failure.problem = DecodingProblem(error, content: content)
            failure.response = response
            throw failure
        }
    }

    /// A response with another media type than the decoder accepts is not decoded. RFC 9110 §8.3.
    private func check(_ response: HttpResponse) throws(HttpError) {
        guard !decoder.accepts.isEmpty, let stated = response.fields[.contentType] else { return }
        let type = stated.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
        let isRead = decoder.accepts.contains { accepted in
            // RFC 6839: `application/problem+json` is JSON.
            let suffix = accepted.split(separator: "/").last ?? ""
            return type == accepted || type.hasSuffix("+\(suffix)")
        }
        guard isRead else {
            let wanted = decoder.accepts.joined(separator: " or ")
            var failure = HttpError(
                .upstream, .contentType, .checking, "the response is \(type), which is not \(wanted)")
            failure.response = response
            throw failure
        }
    }
}

/// A response type that allows a missing value.
protocol OptionalResponse {
    /// Whether the type of the value itself is undecoded content.
    static var isRaw: Bool { get }
    /// The value; `nil` for a response without content.
    static func map(_ content: [UInt8], of response: HttpResponse, by mapper: ResponseMapper) throws(HttpError) -> Self
    /// The missing value.
    static var absent: Self { get }
}

extension Optional: OptionalResponse where Wrapped: Decodable {
    static var isRaw: Bool { ResponseMapper.isRaw(Wrapped.self) }
    static var absent: Wrapped? { nil }

    static func map(
        _ content: [UInt8], of response: HttpResponse, by mapper: ResponseMapper
    ) throws(HttpError) -> Wrapped? {
        if response.status == .noContent || content.isEmpty { return nil }
        if content.count == 4, !isRaw, content == Array("null".utf8) { return nil }
        return try mapper.map(content, of: response, to: Wrapped.self)
    }
}

extension ResponseMapper {
    /// Whether responses of that type are returned without decoding.
    static func isRaw(_ type: Any.Type) -> Bool {
        if let optional = type as? any OptionalResponse.Type { return optional.isRaw }
        return type == NoContent.self || type == RawContent.self || type == String.self || type == Data.self
    }
}
