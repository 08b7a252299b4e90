public import HttpWare

/// Content for a response of a ware: text whose placeholders are filled in for each request.
public struct FilledContent: Sendable {
    private let template: ContentTemplate
    private let escaping: ContentTemplate.Escaping

    /// The content for this request.
    public func bytes(_ request: HttpRequest, in exchange: Exchange) -> [UInt8] {
        template.content(escaping, request, in: exchange)
    }

    /// Makes content of a known type from a text. Returns `nil` if the text has no placeholder. If values of that type cannot
    /// be escaped, records a mistake and returns `nil`.
    init?(_ text: ContentTemplate, type: String, at key: String, _ options: inout OptionsReader) {
        guard text.fixedText == nil else { return nil }
        guard let escaping = ContentTemplate.escaping(for: type) else {
            options.fail(
                at: key,
                "placeholders are filled in only for plain text, HTML, XML and JSON, not for \(type.quotedForErrors); write"
                    + " {{ for a literal {")
            return nil
        }
        if let problem = text.problem(escaping) {
            options.fail(at: key, problem)
            return nil
        }
        template = text
        self.escaping = escaping
    }
}
