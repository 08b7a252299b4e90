import HttpWare

/// The rules that `rewriteBody` and `rewriteRequestBody` share, and how they are applied.
struct BodyRewriting: Sendable {
    let rules: [RewriteRule]
    /// Whether content is rewritten while it streams.
    let streams: Bool
    let editing: ContentEditing

    static let usualTypes = ["text/*", "application/json", "application/javascript", "application/xml"]
        .compactMap { MediaPattern($0) }

    /// Applies the rules to complete content.
    @Sendable func rewrite(_ bytes: [UInt8], within time: Duration) throws -> (bytes: [UInt8]?, note: String?) {
        var bytes = bytes
        var count = 0
        let end = ContinuousClock.now + time
        for rule in rules {
            let left = ContinuousClock.now.duration(to: end)
            guard let (replaced, found) = try rule.apply(to: bytes, upTo: editing.maxBody, within: left) else {
                continue
            }
            bytes = replaced
            count += found
        }
        return (count > 0 ? bytes : nil, count == 1 ? "1 replacement" : "\(count) replacements")
    }

    /// Reads the options.
    init(options: inout OptionsReader, ofRequests: Bool) {
        var rules: [RewriteRule] = []
        var types = BodyRewriting.usualTypes
        var maxBody = ByteCount.mebibytes(1)
        var streams = false
        var onFailure = EditingFailure.pass
        var patterns: [Int] = []
        var index = 0
        options.readEach("rules", doc: "replacements, in order; each applies to the result of those before it") {
            options in
            if let rule = RewriteRule(options: &options) { rules.append(rule) }
            if options.isGiven("regex") { patterns.append(index) }
            index += 1
        }
        options.require("rules")
        let message = ofRequests ? "requests" : "responses"
        options.read(
            "types", into: &types, doc: "media types of the content to rewrite; text/* matches a group of types")
        options.read(
            "maxBody", into: &maxBody, in: .bytes(1)...RewriteRule.largestBody,
            doc: "maximum content to rewrite, decoded and also after the replacements; not used with stream")
        options.read(
            "stream", into: &streams,
            doc: "replaces texts while the content passes, whatever its size; rules must use find, not regex")
        options.read(
            "onFailure", into: &onFailure,
            doc:
                "the treatment of \(message) that are too large or cannot be decoded: pass sends them unchanged, refuse answers "
                + (ofRequests ? "413, 415 or 400" : "502"))
        options.refuseEmpty("rules", "write a rule such as { find: old, replace: new }")
        options.refuseEmpty("types", "write a media type such as text/html")
        if streams, let first = patterns.first {
            options.fail(
                at: "stream", "cannot be combined with rules[\(first)].regex; write find there, or remove stream")
        }
        options.useless("maxBody", with: "stream", streams, is: true)
        self.rules = rules
        self.streams = streams
        editing = ContentEditing(types: types, maxBody: maxBody, onFailure: onFailure)
    }

    init(
        rules: [RewriteRule], types: [MediaPattern], maxBody: ByteCount, streams: Bool, onFailure: EditingFailure
    ) {
        self.rules = rules
        self.streams = streams
        editing = ContentEditing(types: types, maxBody: maxBody, onFailure: onFailure)
    }
}
