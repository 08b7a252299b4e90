import GatewayConfig
import HttpWare

extension AdminEndpoint {
    /// How the gateway would handle a request, and the files of the configuration with their lines.
    static func explanations(_ subject: AdminSubject) -> [AdminEndpoint] {
        [
            AdminEndpoint(path: "/v1/explain", access: .known, isWrite: true) { request, _ in
                let question: Explanation.Question
                do throws(QuestionMistake) {
                    question = try readQuestion(request)
                } catch {
                    return .abort(with: .problem(.badRequest, error.description))
                }
                return .wait { _, _ in
                    // It runs wares, and a separate loop.
                    .abort(with: await Task.detached { explain(question, subject) }.value)
                }
            },
            AdminEndpoint(path: "/v1/config/text", access: .known) { _, _ in
                // Reading files takes time.
                .wait { _, _ in .abort(with: .json(await Task.detached { texts(subject) }.value)) }
            },
        ]
    }

    // MARK: /v1/explain

    private struct QuestionMistake: Error, CustomStringConvertible {
        let description: String
    }

    private static func readQuestion(_ request: AdminRequest) throws(QuestionMistake) -> Explanation.Question {
        guard let json = try? JsonValue(request.content), let url = json["url"]?.string, !url.isEmpty,
            url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f })
        else { throw QuestionMistake(description: "write a JSON object with the member url, without spaces") }
        let name = json["method"]?.string ?? "GET"
        guard let method = HttpMethod(name) else {
            throw QuestionMistake(description: "\(name.quotedForErrors) is not a method")
        }
        var question = Explanation.Question(method, url)
        if let scheme = question.scheme, method == .connect || !["http", "https"].contains(scheme) {
            throw QuestionMistake(description: "\(scheme):// is not supported here; write http:// or https://")
        }
        question.listener = json["listener"]?.string
        if let text = json["client"]?.string {
            guard let client = IPAddress(text) else {
                throw QuestionMistake(description: "\(text.quotedForErrors) is not an IP address")
            }
            question.client = client
        }
        if let headers = json["headers"] {
            guard case .array(let lines) = headers else {
                throw QuestionMistake(description: "headers is a list of objects with name and value")
            }
            for line in lines.prefix(100) {
                guard let name = line["name"]?.string, let value = line["value"]?.string, FieldName(name) != nil,
                    !value.contains(where: \.isNewline)
                else { throw QuestionMistake(description: "headers is a list of objects with name and value") }
                question.fields.append((name, value))
            }
        }
        return question
    }

    /// Reads the files again, so that wares that count requests do not count this one.
    private static func explain(_ question: Explanation.Question, _ subject: AdminSubject) -> HttpResponse {
        var configuration = subject.status.now.configuration
        if let source = subject.source {
            guard let read = source.read(keeping: configuration).configuration else {
                return .problem(
                    .conflict, "the configuration on disk has errors; \(ProgramName.text) check lists them")
            }
            configuration = read
        }
        do {
            return .json(ExplanationJson(try Explanation(question, in: configuration)).json)
        } catch {
            return .problem(.badRequest, "\(error)")
        }
    }

    // MARK: /v1/config/text

    /// The current files on disk. If a secret is in a line, the rest of that line is masked. In files that are not a valid
    /// configuration, secrets are unknown, so only the names of members are shown.
    private static func texts(_ subject: AdminSubject) -> Json {
        var configuration = subject.status.now.configuration
        let files = Set(configuration.values.map(\.location.file)).sorted()
        var isRead = true
        if let source = subject.source {
            let read = source.read(keeping: configuration).configuration
            isRead = read != nil
            configuration = read ?? configuration
        }
        let shown = files.compactMap { name -> Json? in
            guard let text = TextFile.read(name) else { return nil }
            let lines = ConfigurationLines(
                of: name, in: isRead ? configuration : nil, secrets: configuration.secretTexts)
            return .object([("name", .text(name)), ("lines", .list(lines.masked(text).map(Json.text)))])
        }
        return .object([("files", .list(shown))])
    }
}
