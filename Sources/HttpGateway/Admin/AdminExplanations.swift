import Credentials
import GatewayConfig
import HttpWare

extension AdminEndpoint {
    /// What would become of a request, and the files of the configuration with their lines.
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
                    // It runs wares and a loop of its own.
                    .abort(with: await Task.detached { explain(question, subject) }.value)
                }
            },
            AdminEndpoint(path: "/v1/config/text", access: .known) { _, _ in
                .abort(with: .json(texts(of: subject.status.now.configuration)))
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
        if case .array(let lines)? = json["headers"] {
            for line in lines.prefix(100) {
                guard let name = line["name"]?.string, let value = line["value"]?.string, FieldName(name) != nil,
                    !value.contains(where: \.isNewline)
                else { throw QuestionMistake(description: "headers is a list of objects with name and value") }
                question.fields.append((name, value))
            }
        }
        return question
    }

    /// The files are read anew: wares that count requests do not count this one.
    private static func explain(_ question: Explanation.Question, _ subject: AdminSubject) -> HttpResponse {
        var configuration = subject.status.now.configuration
        if let source = subject.source {
            guard let read = source.read(keeping: configuration).configuration else {
                return .problem(.conflict, "the configuration on disk has errors; httpware check lists them")
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

    /// The files as they are on disk now, secrets masked: those in force by their texts, others by the names of their members.
    private static func texts(of configuration: GatewayConfiguration) -> Json {
        var names: [String] = []
        /// What is in force and no secret, by file and line.
        var shown: [String: [Int: Set<String>]] = [:]
        for value in configuration.values {
            let place = value.location
            if !names.contains(place.file) { names.append(place.file) }
            if let text = value.text { shown[place.file, default: [:]][place.line, default: []].insert(text) }
        }
        let files = names.compactMap { name -> Json? in
            guard var text = TextFile.read(name) else { return nil }
            for secret in configuration.secretTexts where !secret.isEmpty {
                text = text.replacing(secret, with: "***")
            }
            let known = shown[name] ?? [:]
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false).enumerated().map { number, line in
                Json.text(masked(line, known: known[number + 1] ?? []))
            }
            return .object([("name", .text(name)), ("lines", .list(text.hasSuffix("\n") ? lines.dropLast() : lines))])
        }
        return .object([("files", .list(files))])
    }

    /// A line without the value of a member that is named like a secret. References such as `${TOKEN}`, and what is known not to be
    /// one, stay.
    private static func masked(_ line: Substring, known: Set<String>) -> String {
        var result = ""
        var rest = line
        while let colon = rest.firstIndex(of: ":") {
            let name = rest[..<colon].reversed().prefix { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
            let after = rest.index(after: colon)
            result += rest[..<after]
            rest = rest[after...]
            guard Redaction.isSecret(parameter: String(name.reversed())) else { continue }
            let value = rest.drop { $0 == " " }
            let end = value.firstIndex { $0 == "," || $0 == "}" || $0 == "#" } ?? value.endIndex
            let text = value[..<end].trimmingSuffix { $0 == " " || $0 == "\r" }
            let bare = text.drop { $0 == "\"" || $0 == "'" }.trimmingSuffix { $0 == "\"" || $0 == "'" }
            if bare.isEmpty || bare.hasPrefix("${") || bare.hasPrefix("{") || known.contains(String(bare)) { continue }
            result += rest[..<value.startIndex] + "***"
            rest = value[text.endIndex...]
        }
        return result + rest
    }
}

extension Substring {
    /// Without the characters at its end for which it holds.
    fileprivate func trimmingSuffix(while holds: (Character) -> Bool) -> Substring {
        var end = endIndex
        while end > startIndex, holds(self[index(before: end)]) { end = index(before: end) }
        return self[..<end]
    }
}
