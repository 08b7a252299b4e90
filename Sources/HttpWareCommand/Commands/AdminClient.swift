import ArgumentParser
import Dispatch
import FoundationEssentials
import HttpWare
import Synchronization

/// Sends requests to the admin listener of a running gateway, over the gateway's own transport.
struct AdminClient: Sendable {
    let address: SocketAddress
    let token: Secret?

    /// The response of the listener.
    struct Answer: Sendable {
        var status = 0
        var content: [UInt8] = []

        var text: String { String(decoding: content, as: UTF8.self) }
    }

    private static let mostContent = ByteCount.mebibytes(256)
    /// The most bytes of an event's data; events of an admin listener are far shorter.
    private static let longestEvent = 1 << 20

    /// Sends a GET and waits for the answer, at most for `limit`. Ends the program if the listener cannot be reached or requires
    /// a token.
    func get(_ target: String, within limit: Duration = .seconds(60)) throws -> Answer {
        try whole(.get, target, within: limit)
    }

    /// Sends a POST with JSON or without content, and waits for the answer as `get` does.
    func post(_ target: String, _ content: [UInt8] = [], within limit: Duration = .seconds(120)) throws -> Answer {
        try whole(.post, target, content, within: limit)
    }

    /// Sends a request with JSON as its content, or with none, and waits for the answer, as `get` does.
    func send(_ method: HttpMethod, _ target: String, json: String? = nil) throws -> Answer {
        try whole(method, target, json.map { Array($0.utf8) } ?? [], within: .seconds(120))
    }

    private func whole(
        _ method: HttpMethod, _ target: String, _ content: [UInt8] = [], within limit: Duration
    ) throws -> Answer {
        do {
            return try answer(method, target, content, within: limit)
        } catch let failure as Failure {
            Terminal.error(failure.description)
            throw ExitCode(failure.status)
        }
    }

    /// The listener did not answer, or requires a token.
    struct Failure: Error, CustomStringConvertible {
        let description: String
        /// The exit status of a program that ends with this failure.
        let status: Int32
    }

    /// Sends a request and waits for the answer, at most for `limit`. Throws a `Failure` if there is none.
    func answer(
        _ method: HttpMethod, _ target: String, _ content: [UInt8] = [], within limit: Duration = .seconds(60)
    ) throws -> Answer {
        var answer = Answer()
        try send(method, target, content, idle: limit, total: limit) { head, bytes in
            answer.status = head.status.code
            answer.content.append(contentsOf: bytes)
            return true
        } head: {
            answer.status = $0.status.code
        }
        return answer
    }

    /// Sends a GET and passes each event to `take`, until that returns false or the listener ends. WHATWG HTML §9.2.
    ///
    /// `before` is requested after the stream has begun, so that no exchange is missed. `first` gets its answer before `take` gets events.
    func follow(
        _ target: String, after before: String, _ first: @escaping (Answer) throws -> Bool,
        _ take: @escaping (_ event: String, _ data: String) throws -> Bool
    ) throws {
        var hasBegun = false
        var events = EventReader(limit: AdminClient.longestEvent)
        var failure: (any Error)?
        var refused = Answer()
        func receive(_ head: HttpResponse, _ bytes: UnsafeRawBufferPointer) -> Bool {
            guard head.status == .ok else {
                refused.status = head.status.code
                refused.content.append(contentsOf: bytes)
                return true
            }
            do {
                if !hasBegun {
                    hasBegun = true
                    guard try first(meanwhile(before)) else { return false }
                }
                var place = 0
                while let event = events.next(in: bytes, from: &place) {
                    guard try take(event.type ?? "", String(decoding: event.data, as: UTF8.self)) else { return false }
                }
                return true
            } catch {
                failure = error
                return false
            }
        }
        do {
            try send(
                .get, target, idle: .seconds(86_400), total: nil, receive: receive,
                head: { refused.status = $0.status.code })
        } catch let failure as Failure {
            Terminal.error(failure.description)
            throw ExitCode(failure.status)
        }
        if let failure { throw failure }
        if refused.status != 200 { throw refused.refusal }
    }

    /// The same as `get`, on another thread while this one's loop runs.
    private func meanwhile(_ target: String) throws -> Answer {
        let result = Mutex<Result<Answer, any Error>?>(nil)
        let done = DispatchSemaphore(value: 0)
        DetachedThread.start {
            let answer = Result { try get(target) }
            result.withLock { $0 = answer }
            done.signal()
        }
        done.wait()
        return try result.withLock { $0 }?.get() ?? Answer()
    }

    // MARK: One request

    private func send(
        _ method: HttpMethod, _ target: String, _ content: [UInt8] = [], idle: Duration, total: Duration?,
        receive: @escaping (HttpResponse, UnsafeRawBufferPointer) -> Bool,
        head: @escaping (HttpResponse) -> Void
    ) throws {
        let endpoint =
            switch address {
            case .unix(let path): Endpoint(unixPath: path)
            case .ip(let ip, let port): Endpoint(host: "\(ip)", port: port)
            }
        var timeouts = UpstreamService.Timeouts()
        timeouts.idle = idle
        timeouts.total = total
        let service = UpstreamService(name: "admin", endpoints: [endpoint], timeouts: timeouts)
        var request = try HttpRequest(method, target, content: content.isEmpty ? .none : .bytes(content))
        if !content.isEmpty { try request.fields.set("Content-Type", to: "application/json") }
        try request.fields.set("Host", to: endpoint.authority)
        if let token {
            do {
                try request.fields.set("Authorization", to: "Bearer \(token.revealed)")
            } catch {
                throw AdminClient.ended("the token contains a character that is not allowed in a field", 1)
            }
        }

        // A separate loop for this request, on this thread.
        let loop = try EventLoop(name: "admin")
        let transport = LoopTransport(loop: loop, resolver: nil)
        let server = LoopListener(
            name: "command", transport: transport,
            router: OnePlan(ExchangePlan(chain: .empty, service: service, route: nil)))
        let caller = LocalCaller(server, peer: nil, limit: AdminClient.mostContent)
        var result: Result<HttpResponse, GatewayError>?
        var failure: GatewayError?
        caller.send(
            request,
            receive: { response, bytes in
                guard result == nil, !receive(response, bytes) else { return }
                result = .success(response)
                loop.stop()
            }, observe: { failure = $0.failure }
        ) {
            result = result ?? $0
            loop.stop()
        }
        loop.run()
        server.closeAll()
        transport.closeIdle()

        if let failure {
            throw AdminClient.ended(
                "no admin listener answers on \(address): \(failure.reason); "
                    + "is the gateway running, with admin in its configuration?", 3)
        }
        switch result {
        case .success(let response):
            if response.status == .unauthorized {
                throw AdminClient.ended(
                    "the admin listener requires its token; give it with --token or HTTPWARE_ADMIN_TOKEN, or run the command as the gateway's user or as root",
                    1)
            }
            head(response)
        case .failure(let error): throw AdminClient.ended("the admin listener's answer was cut off: \(error.reason)", 3)
        case nil: break
        }
    }

    private static func ended(_ message: String, _ status: Int32) -> Failure {
        Failure(description: message, status: status)
    }
}

/// The admin listener's problem details. RFC 9457.
private struct AdminProblem: Decodable {
    let detail: String
}

extension AdminClient.Answer {
    /// The decoded content of a 200 or 201. For another status, or content that cannot be read, the program ends and names the
    /// problem.
    func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if status == 200 || status == 201, let value = try? JSONDecoder().decode(type, from: Data(content)) {
            return value
        }
        throw refusal
    }

    /// The problem that the listener reports, for people.
    var problem: String {
        let detail = (try? JSONDecoder().decode(AdminProblem.self, from: Data(content)))?.detail
        return detail ?? "the admin listener answered \(status)"
    }

    /// Prints the problem, and returns the error that ends the program.
    var refusal: ExitCode { refusal(of: nil) }

    /// The same for a file that was sent, which is named first.
    func refusal(of file: String?) -> ExitCode {
        Terminal.error(TerminalStyle.plain.shown([file, problem].compactMap(\.self).joined(separator: ": ")))
        return ExitCode(1)
    }
}
