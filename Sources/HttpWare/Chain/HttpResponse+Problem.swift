extension HttpResponse {
    /// A short refusal for programs and people: `application/problem+json` with title, status and detail. RFC 9457.
    ///
    /// The detail is one sentence without a full stop and holds no secret. Additional members are allowed: RFC 9457 §3.2. Before the
    /// response reaches the client, the id of the exchange is added; a browser gets a page instead.
    public static func problem(
        _ status: HttpStatus, _ detail: String, also members: [(String, Json)] = []
    ) -> HttpResponse {
        problem(status, detail, fault: nil, also: members)
    }

    static func problem(
        _ status: HttpStatus, _ detail: String, fault: String?, also members: [(String, Json)] = []
    ) -> HttpResponse {
        var all: [(String, Json)] = [
            ("type", "about:blank"), ("title", .text(title(of: status))), ("status", .number(status.code)),
            ("detail", .text(detail)),
        ]
        if let fault { all.append(("error", .text(fault))) }
        var response = HttpResponse(status, content: .text(Json.object(all + members).text + "\n"))
        response.fields.append(problemType)
        response.problem = ProblemText(detail, fault: fault)
        return response
    }

    private static let problemType = FieldLine(literal: .contentType, "application/problem+json")
    private static let pageType = FieldLine(literal: .contentType, "text/html; charset=utf-8")

    private static func title(of status: HttpStatus) -> String {
        status.reasonPhrase.isEmpty ? "Status \(status.code)" : status.reasonPhrase
    }

    /// Adds the id of the exchange: to the problem details, or in a page if the client prefers HTML. RFC 9110 §12.5.1.
    mutating func presentProblem(to request: borrowing HttpRequest, id: String) {
        guard let problem, !problem.isPresented, let bytes = content.bytes else { return }
        let isForGrpc = GrpcRefusal.isFromGrpcClient(request)
        self.problem = isForGrpc ? ProblemText(problem.detail, fault: problem.fault, isPresented: true) : nil
        fields.addVary(.accept)
        if let accepted = AcceptedMedia(request), accepted.quality(of: "text/html") > accepted.problemQuality {
            fields.set(HttpResponse.pageType)
            content = .bytes(HttpResponse.page(status, problem, host: request.authority?.description, id: id))
        } else {
            // The JSON ends with a brace and a line feed.
            content = .bytes(bytes.dropLast(2) + Array(",\"id\":\(id.jsonString)}\n".utf8))
        }
    }

    private static func page(_ status: HttpStatus, _ problem: ProblemText, host: String?, id: String) -> [UInt8] {
        let title = "\(status.code) \(title(of: status))"
        let rows = [("Host", host), ("Fault", problem.fault), ("Request", id)].compactMap { name, value in
            value.map { "<dt>\(name)</dt><dd>\(HtmlText.escaped($0))</dd>\n" }
        }
        let detail = problem.detail.prefix(1).uppercased() + problem.detail.dropFirst()
        return Array(
            """
            <!doctype html>
            <html lang="en">
            <head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>\(title)</title></head>
            <body>
            <h1>\(title)</h1>
            <p>\(HtmlText.escaped(detail)).</p>
            <dl>
            \(rows.joined())</dl>
            </body>
            </html>

            """.utf8)
    }
}
