extension HttpResponse {
    /// A short refusal for programs and people: `application/problem+json` with title, status and detail. RFC 9457.
    ///
    /// The detail is one sentence without a full stop, and holds no secret. Further members may follow: RFC 9457 §3.2.
    public static func problem(
        _ status: HttpStatus, _ detail: String, also members: [(String, Json)] = []
    ) -> HttpResponse {
        let title = status.reasonPhrase.isEmpty ? "Status \(status.code)" : status.reasonPhrase
        let usual: [(String, Json)] = [
            ("type", "about:blank"), ("title", .text(title)), ("status", .number(status.code)),
            ("detail", .text(detail)),
        ]
        var response = HttpResponse(status, content: .text(Json.object(usual + members).text + "\n"))
        response.fields.append(problemType)
        return response
    }

    private static let problemType = FieldLine(literal: .contentType, "application/problem+json")
}
