import HttpWare
import Scripting

/// A request of a script's own, and its way: to a service of the configuration, or to a URL whose host is allowed.
struct ScriptFetch {
    let request: HttpRequest
    /// The service; `nil` if the request goes where its URL says.
    let service: String?
    let timeout: Duration

    /// The maximum content of a response.
    private static let largest = ByteCount.mebibytes(1)

    /// The service or the host, for people.
    var place: String { service ?? request.authority?.description ?? "" }

    private static let members = ["service", "url", "method", "path", "fields", "body", "json", "timeout"]

    /// Reads the table that a script gives to `http.fetch`.
    init(_ value: ScriptValue, _ limits: LoadedScript.Limits) throws {
        guard case .table(let members) = value else { throw ScriptMisuse("http.fetch needs a table") }
        for member in members {
            let name = member.key.bytes.map { String(decoding: $0, as: UTF8.self) } ?? "?"
            guard Self.members.contains(name) else {
                throw ScriptMisuse(
                    "http.fetch has no member \(name.quotedForErrors)\(didYouMean(name, among: Self.members))")
            }
        }
        service = value["service"].string
        let url = value["url"].string
        guard (service == nil) != (url == nil) else { throw ScriptMisuse("http.fetch needs either service or url") }
        let methodName = value["method"].string ?? "GET"
        guard let method = HttpMethod(methodName), method != .connect else {
            throw ScriptMisuse("the method is invalid")
        }
        let path = value["path"].string
        let target: String
        if let url {
            guard path == nil else { throw ScriptMisuse("write the path in the url") }
            target = url
        } else {
            guard let path = path ?? Optional("/"), path.hasPrefix("/") else {
                throw ScriptMisuse("the path must begin with /")
            }
            target = "http://\(service ?? "")\(path)"
        }
        request = try ScriptFetch.makeRequest(method, target, value)
        if url != nil {
            let host = request.host ?? ""
            guard limits.allowedHosts.contains(where: { $0.lowercased() == host }) else {
                throw ScriptMisuse("allowUrls does not list the host \(host.quotedForErrors)")
            }
        }
        switch value["timeout"] {
        case .missing: timeout = limits.timeout
        case .integer(let seconds) where (1...3600).contains(seconds): timeout = min(.seconds(seconds), limits.timeout)
        case .number(let seconds) where seconds > 0 && seconds <= 3600: timeout = min(.seconds(seconds), limits.timeout)
        default: throw ScriptMisuse("the timeout must be a number of seconds")
        }
    }

    private static func makeRequest(
        _ method: HttpMethod, _ target: String, _ value: ScriptValue
    ) throws(ScriptMisuse) -> HttpRequest {
        var request: HttpRequest
        do throws(GatewayError) {
            request = try HttpRequest(method, target)
        } catch {
            throw ScriptMisuse("the request is invalid: \(error.reason)")
        }
        if case .table(let fields) = value["fields"] {
            for field in fields {
                guard let name = field.key.bytes.flatMap({ FieldName(String(decoding: $0, as: UTF8.self)) }),
                    !name.isGatewayOwned, name != .host, let bytes = field.value.bytes,
                    (try? request.fields.append(name, raw: bytes)) != nil
                else { throw ScriptMisuse("a field of the request cannot be sent") }
            }
        }
        if value["json"] != .missing {
            guard let json = try? Json(script: value["json"]) else {
                throw ScriptMisuse("the value has no form in JSON")
            }
            request.content = .bytes(json.bytes)
            if !request.fields.contains(.contentType) { try? request.fields.append(.contentType, "application/json") }
        } else if let body = value["body"].bytes {
            request.content = .bytes(body)
        }
        return request
    }

    /// Sends the request and waits for its response. The results are the response as a table, or nothing and the reason.
    func carryOut(in exchange: Exchange, client: any HttpClient, within left: Duration) async throws -> [ScriptValue] {
        let result: Result<HttpResponse, GatewayError>
        let limits = CallLimits(timeout: min(timeout, left), content: Self.largest)
        if let service {
            let receiver = ServiceAnswer(upTo: Self.largest)
            let call = exchange.startBeside(request, to: service, within: limits.timeout, telling: receiver)
            guard let call else {
                return [.missing, .text("the service \(service.quotedForErrors) cannot be called here")]
            }
            receiver.call = call
            result = try await receiver.result()
        } else {
            do {
                result = .success(try await client.send(request, limits: limits))
            } catch let error as GatewayError {
                result = .failure(error)
            }
        }
        switch result {
        case .success(let response): return [Self.value(of: response)]
        case .failure(let error): return [.missing, .text(error.reason)]
        }
    }

    private static func value(of response: HttpResponse) -> ScriptValue {
        var names: [String] = []
        var fields: [ScriptValue.Member] = []
        for (name, _) in response.fields.rawLines where !names.contains(name.lowercased) {
            names.append(name.lowercased)
            let value = Array(response.fields.rawValues(of: name).joined(separator: [0x2c, 0x20]))
            fields.append(.init(key: .text(name.lowercased), value: .string(value)))
        }
        return .table([
            .init(key: .text("status"), value: .integer(Int64(response.status.code))),
            .init(key: .text("fields"), value: .table(fields)),
            .init(key: .text("body"), value: .string(response.content.bytes ?? [])),
        ])
    }
}

/// Collects the response of a service. Used on the loop of its exchange.
private final class ServiceAnswer: BackgroundReceiver {
    private let most: Int
    private var response: HttpResponse?
    private var failure: GatewayError?
    private var content: [UInt8] = []
    private let wait = LoopWait<Result<HttpResponse, GatewayError>>()
    var call: (any HttpCall)?

    init(upTo most: ByteCount) { self.most = most.bytes }

    func result() async throws -> Result<HttpResponse, GatewayError> {
        do {
            return try await wait.value()
        } catch {
            call?.cancel()
            throw error
        }
    }

    func responseStarted(_ response: HttpResponse, in exchange: Exchange) {
        self.response = response
        failure = exchange.failure
    }

    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        guard content.count + bytes.count <= most else {
            wait.resume(
                returning: .failure(
                    GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(most) bytes")))
            call?.cancel()
            call = nil
            return
        }
        content.append(contentsOf: bytes)
    }

    func responseEnded(isWhole: Bool) {
        call = nil
        if let failure {
            wait.resume(returning: .failure(failure))
        } else if var response, isWhole {
            response.content = .bytes(content)
            wait.resume(returning: .success(response))
        } else {
            wait.resume(returning: .failure(GatewayError(.upstream, .responseIncomplete, "the response was cut off")))
        }
    }
}

extension ScriptValue {
    /// The text of a string.
    var string: String? {
        if case .string(let bytes) = self { String(decoding: bytes, as: UTF8.self) } else { nil }
    }
}
