import HttpWare
import Synchronization

/// Sends messages to a server or a supervised program. Shared by all loops.
final class CalloutCaller: Sendable {
    /// The receiver of the messages.
    enum Place: Sendable {
        case server(any HttpClient, name: String)
        case program(CalloutProgram)
    }

    let place: Place
    /// The maximum time of one call.
    let timeout: Duration
    private let request: HttpRequest
    /// The request in a test run, where the case answers in place of the receiver.
    private let caseRequest: HttpRequest
    private let wants: CalloutWants
    /// The maximum size of an answer; `nil` for one that suits the content that the program sees.
    private let mostAnswer: ByteCount?
    private let underWay = Atomic(0)

    /// The maximum number of concurrent calls.
    static let most = 1000

    /// Prepares calls with this request, which is sent with each message. Without a URL of its own, the receiver has one in test runs.
    init(
        _ place: Place, _ request: HttpRequest, inCases caseRequest: HttpRequest? = nil, wants: CalloutWants,
        timeout: Duration, mostAnswer: ByteCount? = nil
    ) {
        self.place = place
        self.wants = wants
        self.timeout = timeout
        self.mostAnswer = mostAnswer
        self.request = request
        self.caseRequest = caseRequest ?? request
    }

    /// The receiver, for people.
    var name: String {
        switch place {
        case .server(_, let name): name
        case .program(let program): program.name
        }
    }

    var program: CalloutProgram? { if case .program(let program) = place { program } else { nil } }

    /// The halves and the content; `nil` while only a program that has not answered yet knows them.
    var knownWants: CalloutWants? {
        switch place {
        case .server: wants
        case .program(let program): isInCase ? wants : program.knownWants
        }
    }

    /// The most content of requests that is collected: before a program has said what it sees, some.
    var requestContent: Int? {
        if let known = knownWants { return known.request ? known.requestContent : nil }
        return wants.requestContent ?? CalloutCaller.presumedContent
    }

    private static let presumedContent = 1 << 20

    /// The most bytes of an answer: without the option, content that the program sees can come back with each byte escaped or as Base64.
    private var answerLimit: ByteCount {
        if let mostAnswer { return mostAnswer }
        let known = knownWants ?? wants
        let content = max(known.requestContent ?? 0, known.responseContent ?? 0)
        return .bytes(CalloutCaller.leastAnswer + 6 * content)
    }

    private static let leastAnswer = 1 << 20

    /// Waits until the receiver is ready, and returns what it wants to see.
    func ready(in exchange: Exchange) async throws -> CalloutWants {
        switch place {
        case .server: wants
        case .program(let program): isInCase ? wants : try await program.ready(within: timeout, in: exchange)
        }
    }

    /// Sends a message, and returns the content of the answer. Throws a `CalloutFault`, or `CancellationError`.
    func send(_ message: [UInt8], in exchange: Exchange) async throws -> [UInt8] {
        guard underWay.add(1, ordering: .relaxed).newValue <= CalloutCaller.most else {
            underWay.subtract(1, ordering: .relaxed)
            throw CalloutFault(.noAnswer, "\(CalloutCaller.most) calls are under way")
        }
        defer { underWay.subtract(1, ordering: .relaxed) }
        var request = isInCase ? caseRequest : self.request
        request.content = .bytes(message)
        let begun = exchange.now
        let most = answerLimit
        var limits = CallLimits(timeout: timeout, content: most)
        limits.reusesConnections = true
        let response: HttpResponse
        do {
            response = try await client().send(request, limits: limits)
        } catch let error as GatewayError where error.fault == .connectionTerminated {
            // A kept connection was closed, perhaps because the program has ended and is started again.
            if !isInCase { _ = try await program?.ready(within: timeout, in: exchange, mayHaveEnded: true) }
            limits.reusesConnections = false
            limits.timeout = max(.milliseconds(1), timeout - (exchange.now - begun))
            do {
                response = try await client().send(request, limits: limits)
            } catch let error as GatewayError {
                throw fault(error, most)
            }
        } catch let error as GatewayError {
            throw fault(error, most)
        }
        guard response.status == .ok else {
            let reason = CalloutAnswer.error(in: response.content.bytes ?? []).map { ": \($0)" } ?? ""
            throw CalloutFault.wrong(
                "\(name) answered with the status \(response.status.code) in place of 200\(reason)")
        }
        return response.content.bytes ?? []
    }

    private func client() throws(CalloutFault) -> any HttpClient {
        switch place {
        case .server(let client, _): client
        case .program(let program): isInCase ? SideCaller() : try program.client()
        }
    }

    /// Whether this is a test run, in which no program is started.
    private var isInCase: Bool { LoopTransport.current?.standInClient != nil }

    private func fault(_ error: GatewayError, _ most: ByteCount) -> CalloutFault {
        switch error.fault {
        case .responseContentTooLarge: .wrong("the answer of \(name) is larger than \(most.optionText)")
        case .responseTimeout, .connectionTimeout:
            CalloutFault(.noAnswer, "\(name) did not answer in \(timeout.optionText)")
        case .responseMalformed, .responseHeadTooLarge, .responseIncomplete:
            .wrong("the answer of \(name) is not HTTP: \(error.reason)")
        default: CalloutFault(.noAnswer, "\(name) did not answer: \(error.reason)")
        }
    }
}
