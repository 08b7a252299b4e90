extension HttpResponse {
    /// A short refusal for programs and people: `application/problem+json` with title, status and detail. RFC 9457.
    ///
    /// The detail is one sentence without a full stop, and holds no secret.
    public static func problem(_ status: HttpStatus, _ detail: String) -> HttpResponse {
        let title = status.reasonPhrase.isEmpty ? "Status \(status.code)" : status.reasonPhrase
        var response = HttpResponse(
            status,
            content: .text(
                "{\"type\":\"about:blank\",\"title\":\(title.jsonString),\"status\":\(status.code),"
                    + "\"detail\":\(detail.jsonString)}\n"))
        response.fields.append(problemType)
        return response
    }

    private static let problemType = FieldLine(verified: .contentType, "application/problem+json")
}
