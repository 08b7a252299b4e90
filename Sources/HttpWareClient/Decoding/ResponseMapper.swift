/// Makes values from responses: checks the media type, decodes, and reports exactly what is wrong.
public struct ResponseMapper: Sendable {
    /// Reads the content.
    public var decoder: any ModelDecoder

    public init(decoder: any ModelDecoder = JsonCoder()) { self.decoder = decoder }

    /// The value of the content. Throws an `HttpError` with the place and the beginning of the content.
    public func map<Model: Decodable>(
        _ content: [UInt8], of response: HttpResponse, to type: Model.Type = Model.self
    ) throws(HttpError) -> Model {
        if type == Empty.self, let empty = Empty() as? Model { return empty }
        if type == RawContent.self, let raw = RawContent(bytes: content) as? Model { return raw }
        try check(response)
        do {
            return try decoder.decode(type, from: content)
        } catch {
            var failure = HttpError(
                .upstream, .decoding, .decoding, "the content is not \(type)", underlying: error)
            failure.problem = DecodingProblem(error, content: content)
            failure.response = response
            throw failure
        }
    }

    /// A response that states another media type than the decoder reads is not decoded. RFC 9110 §8.3.
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
