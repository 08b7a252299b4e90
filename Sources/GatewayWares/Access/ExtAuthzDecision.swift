import HttpWare

/// The decision of an authorization server about a request.
enum ExtAuthzDecision: Sendable {
    case allowed(ExtAuthzAllowance)
    /// The response for the client: a redirect or a refusal.
    case refused(HttpResponse)
    /// The server gave no answer, or an unusable one; the text is the reason.
    case missing(String)

    /// Reads an answer: 2xx allows the request, 3xx and 4xx refuse it, and any other status decides nothing.
    init(_ answer: ExtAuthzCall.Answer, from server: String, copy: [FieldName], copyToResponse: [FieldName]) {
        switch answer {
        case .failure(let error): self = .missing(error.reason)
        case .success(let response):
            switch response.status.code {
            case 200..<300: self = .allowed(ExtAuthzAllowance(response.fields, server, copy, copyToResponse))
            // 304 answers a condition, but the question had none.
            case 300..<500 where response.status != .notModified: self = .refused(Self.refusal(response))
            default: self = .missing("the status of its answer is \(response.status.code)")
            }
        }
    }

    /// The answer as a response of the gateway, with new framing.
    private static func refusal(_ response: HttpResponse) -> HttpResponse {
        var refusal = HttpResponse(response.status, content: response.content.bytes.map { .bytes($0) } ?? .none)
        response.fields.forEachLine { name, value in
            guard let name = FieldName(String(decoding: name, as: UTF8.self)), !name.isGatewayOwned else { return }
            // Cannot throw: it was in a field line.
            try? refusal.fields.append(name, raw: Array(value))
        }
        return refusal
    }

    /// The approximate size in memory, in bytes.
    var size: Int {
        switch self {
        case .allowed(let allowance): 512 + allowance.size
        case .refused(let response): 512 + 2 * response.fields.wireCount + (response.content.bytes?.count ?? 0)
        case .missing: 512
        }
    }
}

/// The result of an answer that allows a request.
final class ExtAuthzAllowance: Sendable {
    typealias Line = (name: FieldName, value: [UInt8])

    /// The fields that go upstream.
    let fields: [Line]
    /// The fields that go upstream, as one block; `nil` if a value is not UTF-8.
    let block: FieldBlock?
    /// The names of those fields that contain credentials, whose values are never shown.
    let credentials: [FieldName]
    /// The fields that go to the client with the response.
    let responseFields: [Line]
    /// The user that the answer names.
    let principal: Principal?

    /// The fields that name a user, in order of preference.
    static let userFields: [FieldName] = ["Remote-User", "X-Auth-Request-User", "X-Forwarded-User"]

    init(_ answer: HttpFields, _ server: String, _ copy: [FieldName], _ copyToResponse: [FieldName]) {
        func lines(_ names: [FieldName]) -> [Line] {
            names.flatMap { name in answer.rawValues(of: name).map { (name, $0) } }
        }
        let fields = lines(copy)
        self.fields = fields
        let prepared = fields.compactMap { name, value in
            // Cannot throw: each was in a field line.
            String(validating: value, as: UTF8.self).flatMap { try? FieldLine(name, $0) }
        }
        block = prepared.count == fields.count ? FieldBlock(prepared) : nil
        credentials = [.authorization, .cookie].filter { name in fields.contains { $0.name == name } }
        responseFields = lines(copyToResponse)
        principal =
            Self.userFields.lazy.compactMap { name -> Principal? in
                let values = fields.filter { $0.name == name }.map(\.value)
                guard values.count == 1, let user = values.first, !user.isEmpty else { return nil }
                let identity = user.withUnsafeBytes { Digest256(of: ["extAuthz", server]).followed(by: $0) }
                return Principal(method: "extAuthz", name: String(decoding: user, as: UTF8.self), identity: identity)
            }.first
    }

    var size: Int { (fields + responseFields).reduce(0) { $0 + 256 + 2 * $1.value.count } }
}
