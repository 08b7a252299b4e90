public import HttpWare

/// Refuses content above a size limit: requests with 413, responses with 502. RFC 9110 §15.5.14.
public struct BodyLimit: Middleware, Postware {
    /// The maximum size of a request's content.
    public var max: ByteCount
    /// The maximum size of a response's content; `nil` sets no limit.
    public var response: ByteCount?
    /// The status of the response to refused requests.
    public var status: HttpStatus

    public init(
        max: ByteCount = .mebibytes(10), response: ByteCount? = nil, status: HttpStatus = .contentTooLarge
    ) {
        self.max = max
        self.response = response
        self.status = status
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if let length = request.content.length, length > max.bytes {
            return .abort(with: .problem(status, "the content is larger than \(max)"))
        }
        if !request.content.isEmpty { request.content.limit(to: max.bytes) }
        return .pass
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if let failure = exchange.failure, failure.side == .downstream, failure.fault == .contentTooLarge {
            response.status = status
            return .pass
        }
        guard let limit = self.response else { return .pass }
        if let length = response.content.length, length > limit.bytes {
            return .replace(with: .problem(.badGateway, "the response's content is larger than \(limit)"))
        }
        if !response.content.isEmpty { response.content.limit(to: limit.bytes) }
        return .pass
    }
}

extension BodyLimit: Safeguard {}

extension BodyLimit: ConfigurableWare {
    public static let name: WareName = "bodyLimit"
    public static let chainPlace: ChainPlace? = .contentLimits
    public static let about = WareAbout(
        "Refuses content above a size limit: requests with 413, responses with 502.", source: "RFC 9110 §15.5.14",
        example: #"""
            - bodyLimit: { max: 1MiB, response: 100MiB }
            """#,
        details: #"""
            Content of known length is refused before any of it is read. Other content is counted as it streams, and
            refused at the first byte above the limit. A response that has begun by then is cut off.
            """#,
        otherNames: ["buffering", "clientMaxBodySize", "maxBodySize", "requestSizeLimit", "requestBody"])

    public init(options: inout OptionsReader) {
        self.init()
        let allowed = ByteCount.bytes(1)...ByteCount.gibibytes(1024)
        options.read("max", into: &max, in: allowed, doc: "maximum size of a request's content")
        options.read(
            "response", into: &response, in: allowed,
            doc: "maximum size of a response's content; by default responses are not limited")
        options.read(
            "status", into: &status, in: HttpStatus.errors, doc: "status of the response to requests above the limit")
    }
}
