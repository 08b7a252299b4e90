import Capturing
import GatewayConfig
import GatewayWares
import Glibc
import HttpWare
import Wares

/// Makes rules from requests to the admin listener.
struct RuleReader {
    /// Why no rule can be made.
    struct Mistake: Error {
        var status = HttpStatus.badRequest
        let detail: String
        var column: Int?
    }

    /// The folder of the archives of `record` and `replay`.
    let folder: String
    /// Whether the admin listener has a token. Without one, rules must not use files.
    let hasToken: Bool

    /// The wares that a rule can have: none that authenticates, restricts access, sets a principal or injects a token.
    static let wares: [any ConfigurableWare.Type] = [
        Break.self, ErrorPage.self, Fault.self, JsonTransform.self, Mock.self, Record.self, Redirect.self, Replay.self,
        RequestHeaders.self, ResponseHeaders.self, Rewrite.self, RewriteBody.self, RewriteRequestBody.self,
        Throttle.self, Timeout.self,
    ]
    /// The wares whose file is in the folder.
    private static let filed = ["record", "replay"]
    /// The maximum duration of a rule.
    private static let longest = Duration.seconds(86_400)
    private static let longestReason = 500

    /// A requested rule.
    struct Request {
        let filter: CaptureFilter
        let type: any ConfigurableWare.Type
        /// The options without `on`.
        let options: ConfigNode
        let shown: ConfigNode
        let on: (request: Bool, response: Bool)
        let time: Duration
        let count: Int?
        let reason: String
    }

    func read(_ content: [UInt8]) throws(Mistake) -> Request {
        guard let json = try? JsonValue(content), let members = json.members else {
            throw Mistake(detail: "write a JSON object with filter, ware, options, for and reason")
        }
        let known = ["filter", "ware", "options", "for", "count", "reason"]
        if let other = members.first(where: { !known.contains($0.name) }) {
            throw Mistake(detail: "\(other.name.quotedForErrors) is unknown; use \(known.joined(separator: ", "))")
        }
        guard let text = json["filter"]?.string else {
            throw Mistake(detail: "filter is missing; ~all is every exchange")
        }
        let filter: CaptureFilter
        do throws(FilterFault) {
            filter = try CaptureFilter(text)
        } catch {
            throw Mistake(detail: "filter: \(error)", column: error.column)
        }
        guard let name = json["ware"]?.string else { throw Mistake(detail: "ware is missing") }
        guard let type = Self.wares.first(where: { $0.name.text == name }) else {
            let names = Self.wares.map { $0.name.text }.joined(separator: ", ")
            let isKnown = BuiltinWares.all.contains { $0.name.text == name }
            throw Mistake(
                status: isKnown ? .forbidden : .badRequest,
                detail: isKnown
                    ? "\(name) cannot be put in force for a while; use one of \(names)"
                    : "\(name.quotedForErrors) is not a ware that a rule can have; use one of \(names)")
        }
        guard let time = json["for"]?.string.flatMap({ try? Duration(optionText: $0) }), time > .zero,
            time <= Self.longest
        else { throw Mistake(detail: "for is a time such as 10m, at most \(Self.longest.optionText)") }
        guard let reason = json["reason"]?.string, !reason.isEmpty, reason.utf8.count <= Self.longestReason else {
            throw Mistake(detail: "reason is missing: say why, in at most \(Self.longestReason) bytes")
        }
        var count: Int?
        if let given = json["count"], given != .null {
            guard case .number(let digits) = given, let number = Int(digits), (1...1_000_000_000).contains(number)
            else {
                throw Mistake(detail: "count is a whole number from 1")
            }
            count = number
        }
        let given = json["options"] ?? .object([])
        guard given.members != nil else { throw Mistake(detail: "options is an object") }
        let shown = ConfigNode(given)
        var options = shown
        var on = (request: true, response: true)
        if type is any EitherSided.Type, let entry = shown["on"] {
            let sides = Set(entry.members.map { $0.text ?? "" })
            guard !sides.isEmpty, sides.isSubset(of: ["request", "response"]) else {
                throw Mistake(detail: "\(name).on: write request, response, or leave it out for both")
            }
            on = (sides.contains("request"), sides.contains("response"))
            options = ConfigNode(.map((shown.entries ?? []).filter { $0.key != "on" }))
        }
        return Request(
            filter: filter, type: type, options: options, shown: shown, on: on, time: time, count: count, reason: reason
        )
    }

    /// Builds the ware and its chain entries.
    func build(_ request: Request, id: Int, now: WallTime) throws(Mistake) -> GatewayRules.Active {
        let type = request.type
        let name = type.name.text
        let ware = try make(type, try placed(request.options, type))
        let rule = Rule(
            id: id, filter: request.filter, ware: name, options: request.shown, reason: request.reason,
            until: now + request.time, count: request.count, readFields: Self.fieldsRead(by: request.shown))
        let middleware = ware as? any Middleware
        let postware = ware as? any Postware
        var middlewares: [ChainEntry] = []
        var postwares: [ChainEntry] = []
        do throws(FilterFault) {
            if let middleware, let postware, !(ware is any EitherSided) {
                var gate: FilterGate?
                var both: any Postware = postware
                var first: any Middleware = middleware
                if let filtered = ware as? any FilteredWare, Swift.type(of: filtered).filtersAtEnd {
                    try request.filter.checkWithoutRecord()
                    if request.filter.need(beyond: FilterGate.requestPhase) == nil {
                        gate = try FilterGate(request.filter, isPostware: false)
                    } else {
                        let made = filtered.filtered(by: request.filter)
                        both = made as? any Postware ?? both
                        first = made as? any Middleware ?? first
                    }
                } else {
                    gate = try FilterGate(request.filter, isPostware: false)
                }
                let acting = RuleBothSides(request: RuleMiddleware(rule: rule, ware: first), response: both)
                middlewares.append(entry(acting, name, RuleGate(rule: rule, filter: gate), .last))
            } else {
                if let middleware, request.on.request {
                    let gate = RuleGate(rule: rule, filter: try FilterGate(request.filter, isPostware: false))
                    let acting: any Ware = RuleMiddleware(rule: rule, ware: middleware)
                    middlewares.append(entry(acting, name, gate, .last))
                }
                if let postware, request.on.response {
                    let gate = RuleGate(rule: rule, filter: try FilterGate(request.filter, isPostware: true))
                    postwares.append(entry(RulePostware(rule: rule, ware: postware), name, gate, .first))
                }
            }
        } catch {
            throw Mistake(detail: "filter: \(error)", column: error.column)
        }
        return GatewayRules.Active(rule: rule, middlewares: middlewares, postwares: postwares)
    }

    private func entry(_ ware: any Ware, _ label: String, _ gate: RuleGate, _ order: WareOrder) -> ChainEntry {
        ChainEntry(ware, label: label, gate: gate, order: order)
    }

    private func make(_ type: any ConfigurableWare.Type, _ options: ConfigNode) throws(Mistake) -> any ConfigurableWare
    {
        var reader = OptionsReader(options, keyPath: type.name.text)
        let ware = type.init(options: &reader)
        let captures = reader.neededCaptures
        let errors = reader.finish().filter { $0.severity == .error }
        if !errors.isEmpty {
            throw Mistake(detail: errors.map { "\($0.keyPath): \($0.message)" }.joined(separator: "; "))
        }
        if let capture = captures.first {
            throw Mistake(detail: "\(capture.keyPath): a rule has no route, so {path.\(capture.name)} is unknown")
        }
        return ware
    }

    // MARK: Files

    /// The options with the path of the file in the folder. Options that would read other files are refused before the ware is
    /// built.
    private func placed(_ options: ConfigNode, _ type: any ConfigurableWare.Type) throws(Mistake) -> ConfigNode {
        let name = type.name.text
        var reader = OptionsReader.describing()
        _ = type.init(options: &reader)
        let paths = Set(
            reader.described.filter { $0.type == FilePath.optionType }.compactMap {
                $0.key.split(separator: ".").last.map(String.init)
            })
        guard Self.filed.contains(name) else {
            if let key = Self.key(in: options, among: paths) {
                throw Mistake(status: .forbidden, detail: "\(name).\(key): a rule must not name a file")
            }
            return options
        }
        guard hasToken else {
            throw Mistake(
                status: .forbidden,
                detail: "\(name) needs a token of the admin listener, because it uses files: set admin.token")
        }
        guard let file = options["file"]?.text else { throw Mistake(detail: "\(name).file is missing") }
        guard Self.isPlain(file) else {
            throw Mistake(
                status: .forbidden,
                detail: "\(name).file: write a plain name of letters, digits and -._; the file is in \(folder)")
        }
        if name == "record" { try? PrivateFile.makeFolders(folder) }
        let entries = (options.entries ?? []).map { entry in
            entry.key == "file"
                ? ConfigNode.Entry(
                    key: "file", location: .code,
                    value: ConfigNode(.scalar(FilePath.joined(folder, file), isQuoted: true)))
                : entry
        }
        return ConfigNode(.map(entries))
    }

    private static func isPlain(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 200 && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true
                default: false
                }
            }
    }

    /// A key of the map, or of a map inside it, that is among these; `nil` if there is none.
    private static func key(in node: ConfigNode, among keys: Set<String>) -> String? {
        if let entries = node.entries {
            for entry in entries {
                if keys.contains(entry.key) { return entry.key }
                if let found = key(in: entry.value, among: keys) { return found }
            }
        } else if case .list(let members) = node.content {
            for member in members { if let found = key(in: member, among: keys) { return found } }
        }
        return nil
    }

    // MARK: Placeholders

    /// The fields that placeholders in the options read, in lower case.
    static func fieldsRead(by node: ConfigNode) -> [String] {
        switch node.content {
        case .scalar(let text, _):
            var fields: [String] = []
            let lower = text.lowercased()
            for part in lower.split(separator: "{", omittingEmptySubsequences: false).dropFirst()
            where part.hasPrefix("request.header.") {
                fields.append(String(part.dropFirst("request.header.".count).prefix { $0 != "}" }))
            }
            return fields
        case .list(let members): return members.flatMap { fieldsRead(by: $0) }
        case .map(let entries): return entries.flatMap { fieldsRead(by: $0.value) + fieldsRead(by: .text($0.key)) }
        }
    }
}

extension ConfigNode {
    /// A value from a program, in the form that a file would have.
    init(_ json: JsonValue) {
        switch json {
        case .null: self.init(.scalar("", isQuoted: false))
        case .boolean(let value): self.init(.scalar(value ? "true" : "false", isQuoted: false))
        case .number(let digits): self.init(.scalar(digits, isQuoted: false))
        case .string(let text): self.init(.scalar(text, isQuoted: true))
        case .array(let elements): self.init(.list(elements.map { ConfigNode($0) }))
        case .object(let members):
            self.init(.map(members.map { Entry(key: $0.name, location: .code, value: ConfigNode($0.value)) }))
        }
    }
}
