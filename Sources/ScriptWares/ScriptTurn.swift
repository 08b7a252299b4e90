// One file: the uses of a script share the messages that one call has borrowed.
import HttpWare
import Scripting

/// A wait that a script has asked for.
enum ScriptWait {
    case sleep(Duration)
    case fetch(ScriptFetch)
    case store(ScriptStoring)

    /// The wait for people: `http.fetch users`.
    var text: String {
        switch self {
        case .sleep(let duration): "sleep \(duration.optionText)"
        case .fetch(let fetch): "http.fetch \(fetch.place)"
        case .store(let storing): storing.text
        }
    }
}

/// The values that scripts keep for one exchange.
enum ScriptVariables: ExchangeKey {
    typealias Value = [String: ScriptValue]
}

/// The request of a response half.
private final class FormerRequest {
    let request: HttpRequest

    init(_ request: HttpRequest) { self.request = request }
}

/// One call of a script's function: answers the script's uses of the request, the response and the exchange.
///
/// Used on the loop of its exchange. The messages are lent to it while the script runs.
final class ScriptTurn: ScriptHost {
    var request: UnsafeMutablePointer<HttpRequest>?
    var response: UnsafeMutablePointer<HttpResponse>?
    var exchange: Exchange?
    /// The exchange's request in a response half, once the script has asked for it.
    private var formerRequest: FormerRequest?
    /// The values of `x.vars` where there is no exchange.
    private var ownVariables: [String: ScriptValue] = [:]
    /// The notes and the lines for the log where there is no exchange.
    private(set) var notes: [String] = []
    private(set) var replay: Duration?
    private(set) var wait: ScriptWait?
    /// The line at which the script waits.
    private(set) var waitingLine: Int?
    private var calls = 0
    /// The most bytes that scripts keep for one exchange.
    private static let mostVariableBytes = 256 << 10
    private let script: LoadedScript
    private var functions = ScriptFunctions()
    private var names = ScriptFieldNames()

    init(_ script: LoadedScript) { self.script = script }

    /// Prepares for another call, of an exchange or of a trial without one. `former` is the request for a trial's response half.
    func begin(in exchange: Exchange?) {
        self.exchange = exchange
        if formerRequest != nil { formerRequest = nil }
        replay = nil
        if waitingLine != nil {
            wait = nil
            waitingLine = nil
        }
        calls = 0
        if !notes.isEmpty { notes = [] }
    }

    /// Prepares for a trial's response half, without an exchange.
    func begin(after request: HttpRequest) {
        begin(in: nil)
        formerRequest = FormerRequest(request)
    }

    func answer(_ use: ScriptUse) -> ScriptReply {
        do {
            switch use.action {
            case .function(let number): return try call(ScriptFunction.all[number], use)
            case .read(let kind, let number):
                switch ScriptKind(rawValue: kind) {
                case .request: try read(RequestMember(rawValue: number), use)
                case .response: try read(ResponseMember(rawValue: number), use)
                default: try read(ExchangeMember(rawValue: number), use)
                }
            case .write(let kind, let number):
                switch ScriptKind(rawValue: kind) {
                case .request: try write(RequestMember(rawValue: number), use)
                case .response: try write(ResponseMember(rawValue: number), use)
                default: throw ScriptMisuse("x cannot be changed; x.vars keeps values")
                }
            case .readKey(let kind): try read(ScriptKind(rawValue: kind), use)
            case .writeKey(let kind): try write(ScriptKind(rawValue: kind), use)
            case .method(let kind, let number): try callMethod(ScriptKind(rawValue: kind), number, use)
            }
            return .done
        } catch let error as ScriptMisuse {
            return .refuse(error.reason)
        } catch {
            return .refuse("\(error)")
        }
    }

    // MARK: Functions

    private func call(_ function: ScriptFunction, _ use: ScriptUse) throws -> ScriptReply {
        switch function {
        case .sleep:
            guard case .some(let seconds) = use.value(0).flatMap(\.double), seconds >= 0, seconds <= 3600 else {
                throw ScriptMisuse("the duration must be 0 to 3600 seconds")
            }
            return try wait(for: .sleep(.seconds(seconds)), use)
        case .httpFetch:
            guard let value = use.value(0) else { throw ScriptMisuse("the request is nested too deeply or too large") }
            try countCall()
            return try wait(for: .fetch(ScriptFetch(value, script.limits)), use)
        case .storeGet, .storeSet, .storeAdd, .storeRemove:
            let storing = try ScriptStoring(function, use)
            try countCall()
            return try wait(for: .store(storing), use)
        default:
            let now = exchange?.wallNow ?? SystemLoopClock().wallNow()
            for value in try functions.call(function, use, now: now) { use.append(value) }
            return .done
        }
    }

    private func countCall() throws(ScriptMisuse) {
        calls += 1
        guard calls <= script.limits.calls else {
            throw ScriptMisuse("the function makes more than \(script.limits.calls) calls; maxCalls limits them")
        }
    }

    private func wait(for wait: ScriptWait, _ use: ScriptUse) throws -> ScriptReply {
        guard use.mayWait, request != nil || response != nil else {
            throw ScriptMisuse("a script can wait only in request and response")
        }
        self.wait = wait
        waitingLine = use.line
        return .later
    }

    // MARK: The request

    /// The request that the script sees: its own, or in a response half the one that went upstream.
    private func withRequest<Result>(_ body: (borrowing HttpRequest) throws -> Result) throws -> Result {
        if let request { return try body(request.pointee) }
        if formerRequest == nil { formerRequest = exchange?.request.map { FormerRequest($0) } }
        guard let formerRequest else { throw ScriptMisuse("there is no request here") }
        return try body(formerRequest.request)
    }

    /// Adds the line that changes a part of the message to the record.
    private func noteChange(_ part: @autoclosure () -> String, _ use: ScriptUse) {
        exchange?.note("\(part()) at line \(use.line ?? 0)")
    }

    private func changeRequest(_ body: (inout HttpRequest) throws -> Void) throws {
        guard let request else { throw ScriptMisuse("the request has been sent and cannot be changed") }
        try body(&request.pointee)
    }

    private func read(_ member: RequestMember?, _ use: ScriptUse) throws {
        switch member {
        case .cookies: use.append(object: ScriptKind.cookies.rawValue)
        case .fields: use.append(object: ScriptKind.requestFields.rawValue)
        case .client: append(exchange?.client.map { "\($0)" }, use)
        case .principal: append(exchange?.principal?.name, use)
        case .scheme: use.append(text: try withRequest { exchange?.clientScheme(of: copy $0) ?? $0.scheme })
        case .body: append(bytes: try withRequest { try body(of: $0.content, "request") }, use)
        case nil: break
        case .some(let member):
            try withRequest { request in
                switch member {
                case .method: use.append(text: request.method.name)
                case .host: append(request.host, use)
                case .port: use.append(request.port.map { .integer(Int64($0)) } ?? .missing)
                case .authority: append(request.authority?.description, use)
                case .path: use.append(text: request.path)
                case .query: append(request.query, use)
                default: use.append(text: request.path + (request.query.map { "?" + $0 } ?? ""))
                }
            }
        }
    }

    private func body(of content: HttpContent, _ side: String) throws -> [UInt8]? {
        if content.isEmpty { return nil }
        guard let bytes = content.bytes else {
            throw ScriptMisuse("the content is not held: return content = { \(side) = \"64KiB\" } with the functions")
        }
        return bytes
    }

    private func write(_ member: RequestMember?, _ use: ScriptUse) throws {
        if let member { noteChange("\(member)", use) }
        if member == .body {
            let content = try content(use)
            try changeRequest { request in
                request.content = content
                Self.forgetDescription(&request.fields)
            }
            exchange?.requestContentChanges()
            return
        }
        guard let bytes = use.bytes(0) else {
            guard member == .query, use.isMissing(0) else { throw ScriptMisuse("the value must be a string") }
            return try changeRequest { try $0.setQuery(nil) }
        }
        let text = String(decoding: bytes, as: UTF8.self)
        try changeRequest { request in
            switch member {
            case .method:
                guard let method = HttpMethod(text), method != .connect else {
                    throw ScriptMisuse("the method is invalid")
                }
                request.method = method
            case .host, .authority, .port:
                let written =
                    switch member {
                    case .authority: text
                    case .port: "\(request.host ?? ""):\(text)"
                    default: text + (request.port.map { ":\($0)" } ?? "")
                    }
                guard let authority = Authority(written) else { throw ScriptMisuse("the authority is invalid") }
                request.setAuthority(authority)
            case .path: try Self.set(path: text, query: request.query, of: &request)
            case .query: try Self.set(path: nil, query: text, of: &request)
            case .target:
                let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
                try Self.set(path: String(parts[0]), query: parts.count > 1 ? String(parts[1]) : nil, of: &request)
            default: throw ScriptMisuse("this member of the request cannot be changed")
            }
        }
    }

    private static func set(path: String?, query: String?, of request: inout HttpRequest) throws {
        do throws(GatewayError) {
            if let path { try request.setPath(path) }
            try request.setQuery(query)
        } catch {
            throw ScriptMisuse(error.reason)
        }
    }

    // MARK: The response

    private func read(_ member: ResponseMember?, _ use: ScriptUse) throws {
        guard let response else { throw ScriptMisuse("there is no response here") }
        switch member {
        case .status: use.append(.integer(Int64(response.pointee.status.code)))
        case .fields: use.append(object: ScriptKind.responseFields.rawValue)
        case .body: append(bytes: try body(of: response.pointee.content, "response"), use)
        case .responder: append(exchange?.responder.name, use)
        case nil: break
        }
    }

    private func write(_ member: ResponseMember?, _ use: ScriptUse) throws {
        guard let response else { throw ScriptMisuse("there is no response here") }
        if let member { noteChange("\(member)", use) }
        switch member {
        case .status:
            guard let status = use.integer(0).flatMap({ HttpStatus($0) }), status.code >= 200 else {
                throw ScriptMisuse("a status is a number from 200 to 599")
            }
            response.pointee.status = status
        case .body:
            response.pointee.content = try content(use)
            Self.forgetDescription(&response.pointee.fields)
            exchange?.responseContentChanges()
        default: throw ScriptMisuse("this member of the response cannot be changed")
        }
    }

    private func content(_ use: ScriptUse) throws(ScriptMisuse) -> HttpContent {
        if use.isMissing(0) { return .none }
        guard let bytes = use.bytes(0) else { throw ScriptMisuse("content is a string") }
        return .bytes(bytes)
    }

    /// Removes fields that are wrong for other content.
    private static func forgetDescription(_ fields: inout HttpFields) {
        for name in described where fields.contains(name) { fields.remove(name) }
    }

    private static let described: [FieldName] =
        [.contentLength, .contentEncoding, .contentRange, .acceptRanges, .etag, .lastModified] + HttpFields.digests

    // MARK: Keys

    private func name(_ use: ScriptUse) throws(ScriptMisuse) -> String {
        guard let name = use.withString(0, { String(decoding: $0, as: UTF8.self) }) else {
            throw ScriptMisuse("a name is a string")
        }
        return name
    }

    private func fieldName(_ use: ScriptUse) throws(ScriptMisuse) -> FieldName {
        if let known = use.withString(0, { names.name($0) }), let known { return known }
        let text = try name(use)
        guard let name = FieldName(text) else { throw ScriptMisuse("\(text.quotedForErrors) is not a field name") }
        names.add(name)
        return name
    }

    private func withFields<Result>(_ kind: ScriptKind, _ body: (borrowing HttpFields) throws -> Result) throws
        -> Result
    {
        if kind == .responseFields {
            guard let response else { throw ScriptMisuse("there is no response here") }
            return try body(response.pointee.fields)
        }
        return try withRequest { try body($0.fields) }
    }

    private func changeFields(_ kind: ScriptKind, _ name: FieldName, _ body: (inout HttpFields) throws -> Void) throws {
        guard !name.isGatewayOwned else { throw ScriptMisuse("the gateway sets \(name.text) itself") }
        do {
            if kind == .responseFields {
                guard let response else { throw ScriptMisuse("there is no response here") }
                try body(&response.pointee.fields)
            } else {
                guard name != .host else {
                    throw ScriptMisuse("assign req.host or req.authority instead of the field Host")
                }
                try changeRequest { try body(&$0.fields) }
            }
        } catch is InvalidFieldValue {
            throw ScriptMisuse("the value of \(name.text) cannot be sent in a field")
        }
    }

    private func read(_ kind: ScriptKind?, _ use: ScriptUse) throws {
        switch kind {
        case .requestFields, .responseFields:
            let name = try fieldName(use)
            let values = try withFields(kind ?? .requestFields) { $0.rawValues(of: name) }
            if values.count == 1 {
                use.append(.string(values[0]))
            } else {
                append(bytes: values.isEmpty ? nil : Array(values.joined(separator: [0x2c, 0x20])), use)
            }
        case .cookies:
            let name = try name(use)
            let line = try withRequest { $0.fields[.cookie] }
            append(line.flatMap { CookieReader.pairs($0).first { $0.name == name && $0.value != nil }?.value }, use)
        case .variables:
            let variables = exchange.map { $0[ScriptVariables.self] ?? [:] } ?? ownVariables
            use.append(variables[try name(use)] ?? .missing)
        case .claims: append(exchange?.claim(try name(use)), use)
        default: break
        }
    }

    private func write(_ kind: ScriptKind?, _ use: ScriptUse) throws {
        switch kind {
        case .requestFields, .responseFields:
            let name = try fieldName(use)
            let value = use.bytes(1)
            guard value != nil || use.isMissing(1) else { throw ScriptMisuse("the value of a field is a string") }
            noteChange(name.text, use)
            try changeFields(kind ?? .requestFields, name) { fields in
                if let value { try fields.set(name, toRaw: value) } else { fields.remove(name) }
            }
        case .cookies:
            noteChange("cookies", use)
            try setCookie(try name(use), use)
        case .variables:
            guard let value = use.value(1), value != .other else { throw ScriptMisuse("x.vars keeps no such value") }
            var variables = exchange.map { $0[ScriptVariables.self] ?? [:] } ?? ownVariables
            let name = try name(use)
            variables[name] = value == .missing ? nil : value
            guard variables.count <= 100 else { throw ScriptMisuse("x.vars keeps at most 100 values") }
            guard variables.reduce(0, { $0 + $1.key.utf8.count + $1.value.bytesHeld }) <= ScriptTurn.mostVariableBytes
            else { throw ScriptMisuse("x.vars keeps at most \(ScriptTurn.mostVariableBytes >> 10) KiB") }
            if let exchange { exchange[ScriptVariables.self] = variables } else { ownVariables = variables }
        default: throw ScriptMisuse("claims cannot be changed")
        }
    }

    private func setCookie(_ name: String, _ use: ScriptUse) throws {
        let value = use.bytes(1).map { String(decoding: $0, as: UTF8.self) }
        guard value != nil || use.isMissing(1) else { throw ScriptMisuse("the value of a cookie is a string") }
        guard !name.isEmpty, !(name + (value ?? "")).utf8.contains(where: { $0 <= 0x20 || $0 == 0x3b || $0 >= 0x7f }),
            !name.contains("=")
        else { throw ScriptMisuse("the name or the value of the cookie cannot be sent") }
        try changeRequest { request in
            var pairs = request.fields[.cookie].map { CookieReader.pairs($0) } ?? []
            let place = pairs.firstIndex { $0.name == name }
            pairs.removeAll { $0.name == name }
            if let value { pairs.insert((name, value), at: min(place ?? pairs.count, pairs.count)) }
            if pairs.isEmpty {
                request.fields.remove(.cookie as FieldName)
            } else {
                let line = pairs.map { pair in pair.value.map { "\(pair.name)=\($0)" } ?? pair.name }
                try request.fields.set(.cookie, to: line.joined(separator: "; "))
            }
        }
    }

    // MARK: Methods

    private func callMethod(_ kind: ScriptKind?, _ number: Int, _ use: ScriptUse) throws {
        switch kind {
        case .request: try callRequest(RequestMethod(rawValue: number), use)
        case .exchange: try callExchange(ExchangeMethod(rawValue: number), use)
        case .requestFields, .responseFields:
            try callFields(FieldsMethod(rawValue: number), kind ?? .requestFields, use)
        default: break
        }
    }

    private func callFields(_ method: FieldsMethod?, _ kind: ScriptKind, _ use: ScriptUse) throws {
        switch method {
        case .all:
            let name = try fieldName(use)
            use.append(.list(try withFields(kind) { $0.rawValues(of: name) }.map { .string($0) }))
        case .add:
            let name = try fieldName(use)
            guard let value = use.bytes(1) else { throw ScriptMisuse("the value of a field is a string") }
            noteChange(name.text, use)
            try changeFields(kind, name) { try $0.append(name, raw: value) }
        case .each:
            let lines = try withFields(kind) { $0.rawLines }
            use.append(.list(lines.flatMap { [ScriptValue.text($0.name.text), .string($0.value)] }))
        case nil: break
        }
    }

    private func callRequest(_ method: RequestMethod?, _ use: ScriptUse) throws {
        let name = try name(use)
        let pairs = try withRequest { ScriptQuery($0.query) }
        switch method {
        case .param: append(bytes: pairs.values(of: name).first, use)
        case .params: use.append(.list(pairs.values(of: name).map { .string($0) }))
        case .setParam:
            let value = use.bytes(1)
            guard value != nil || use.isMissing(1) else { throw ScriptMisuse("the value of a parameter is a string") }
            noteChange("query", use)
            try changeRequest { try Self.set(path: nil, query: pairs.setting(name, to: value), of: &$0) }
        case nil: break
        }
    }

    private func callExchange(_ method: ExchangeMethod?, _ use: ScriptUse) throws {
        switch method {
        case .log:
            guard let level = WareLog.Level(rawValue: try name(use)) else {
                throw ScriptMisuse("a level is trace, debug, info, notice, warning, error or critical")
            }
            let text = Self.line(use.bytes(1) ?? [], most: 1_000)
            guard let exchange else { return notes.append("\(level): \(text)") }
            if !exchange.isDryRun { WareLog.shared.log(level, "\(script.name): \(text)") }
        case .note:
            let name = try name(use)
            let value = Self.line(use.bytes(1) ?? [], most: 200)
            let shown = Self.line(Array(name.utf8), most: 50)
            if let exchange { exchange.note(value, as: shown) } else { notes.append("\(shown)=\(value)") }
        case .replay:
            guard script.replays else { throw ScriptMisuse("a script that asks for a replay returns replays = true") }
            guard response != nil, let seconds = use.value(0).flatMap(\.double), seconds >= 0, seconds <= 3600 else {
                throw ScriptMisuse("a replay is asked for in response, after 0 to 3600 seconds")
            }
            replay = .seconds(seconds)
        case nil: break
        }
    }

    /// Bytes of a script as one line.
    private static func line(_ bytes: [UInt8], most: Int) -> String {
        String(decoding: bytes.prefix(most).map { $0 < 0x20 || $0 == 0x7f ? 0x20 : $0 }, as: UTF8.self)
    }

    private func read(_ member: ExchangeMember?, _ use: ScriptUse) throws {
        switch member {
        case .id: append(exchange?.id, use)
        case .route: append(exchange?.route, use)
        case .service: append(exchange?.service, use)
        case .listener: append(exchange?.listener, use)
        case .attempt: use.append(.integer(Int64((exchange?.record.replays ?? 0) + 1)))
        case .claims: use.append(object: ScriptKind.claims.rawValue)
        case .vars: use.append(object: ScriptKind.variables.rawValue)
        case .request: use.append(object: ScriptKind.request.rawValue)
        case nil: break
        }
    }

    private func append(_ text: String?, _ use: ScriptUse) {
        if let text { use.append(text: text) } else { use.append(.missing) }
    }

    private func append(bytes: [UInt8]?, _ use: ScriptUse) { use.append(bytes.map { .string($0) } ?? .missing) }
}

extension ScriptValue {
    /// About the bytes that the value occupies.
    fileprivate var bytesHeld: Int {
        switch self {
        case .string(let bytes): 32 + bytes.count
        case .list(let values): values.reduce(32) { $0 + $1.bytesHeld }
        case .table(let members): members.reduce(32) { $0 + $1.key.bytesHeld + $1.value.bytesHeld }
        default: 16
        }
    }

    /// The value of a number.
    fileprivate var double: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }
}
