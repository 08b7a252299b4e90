public import Capturing
public import HttpWare
import Wares

/// Answers requests with the responses of an archive (HAR 1.2).
public struct Replay: Middleware {
    /// A part of a request that must equal that of the recorded one.
    public enum Part: String, Sendable, CaseIterable, OptionWord { case method, url, body }

    /// The treatment of a request that is not in the archive.
    public enum Missing: String, Sendable, CaseIterable, OptionWord {
        case forward
        case notFound = "404"
        case fail
    }

    /// The choice among several responses to the same request.
    public enum Order: String, Sendable, CaseIterable, OptionWord { case once, loop, last }

    private let responses: RecordedResponses
    private let matching: RecordedResponses.Matching
    private let missing: Missing
    private let order: Order
    private let timing: Bool

    public var holdsState: Bool { true }
    public var contentNeed: ContentNeed {
        !matching.body ? .none : missing == .forward ? .beginning : .whole(upTo: Replay.mostBody)
    }

    private static let mostBody = 16 << 20
    private static let mostFile = 256 << 20

    /// Answers with these exchanges, by method, URL and body.
    public init(
        _ exchanges: [CapturedExchange], missing: Missing = .forward, order: Order = .last, timing: Bool = false
    ) {
        self.init(exchanges, .init(), missing: missing, order: order, timing: timing)
    }

    init(
        _ exchanges: [CapturedExchange], _ matching: RecordedResponses.Matching, missing: Missing,
        order: Order, timing: Bool
    ) {
        self.matching = matching
        self.missing = missing
        self.order = order
        self.timing = timing
        responses = RecordedResponses(exchanges, matching)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        var question = question(request, exchange)
        guard question.body?.isEmpty == false, let coded = Replay.coded(&question, request) else {
            return answer(to: question, isHead: request.method == .head, exchange)
        }
        // Decoding 16 MiB takes a loop's time from others.
        return .wait { [question] request, exchange in
            var question = question
            question.body = await Task.detached { DecodedContent(coded, limit: Replay.mostBody).bytes }.value
            return answer(to: question, isHead: request.method == .head, exchange)
        }
    }

    private func answer(to question: RecordedResponses.Question, isHead: Bool, _ exchange: Exchange) -> Verdict {
        guard let recorded = responses.take(question, order: order) else {
            switch missing {
            case .forward:
                exchange.note("not in the archive", asDecision: false)
                return .pass
            case .notFound: return .abort(with: .problem(.notFound, "the archive has no response to this request"))
            case .fail: return .abort(with: .problem(.badGateway, "the archive has no response to this request"))
            }
        }
        exchange.note("replayed", asDecision: true)
        let response = Replay.response(recorded, timing, isHead: isHead)
        let timings = CapturedTimings(of: recorded)
        let wait = max(0, timings.total - timings.receive)
        guard timing, wait > 0 else { return .abort(with: response) }
        return .wait { _, exchange in
            try await exchange.sleep(for: .microseconds(min(wait, Replay.longestWait)))
            return .abort(with: response)
        }
    }

    /// An hour, in microseconds.
    private static let longestWait = 3_600_000_000

    /// The compared parts of a request, whose content is as it was received.
    private func question(_ request: HttpRequest, _ exchange: Exchange) -> RecordedResponses.Question {
        var question = RecordedResponses.Question(
            method: request.method.name, origin: RecordedResponses.origin(request),
            path: RecordedResponses.path(request),
            query: RecordedResponses.query(request, ignoring: matching.ignoredParameters))
        question.isForward = exchange.isForward
        question.values = matching.headers.map { request.fields.rawValues(of: $0).map { ReceivedText.text($0) } }
        guard matching.body else { return question }
        let (bytes, isWhole) =
            request.content.bytes.map { ($0, true) }
            ?? (request.content.isEmpty ? ([], true) : exchange.beginningOfContent)
        if isWhole { question.body = bytes }
        return question
    }

    /// A message with the content of a question, which it takes; `nil` if the content is not coded.
    private static func coded(
        _ question: inout RecordedResponses.Question, _ request: HttpRequest
    ) -> CapturedMessage? {
        guard request.fields.contains("Content-Encoding"), let bytes = question.body else { return nil }
        var message = CapturedMessage(
            fields: CapturedFields(
                request.fields.values(of: "Content-Encoding").map { CapturedMessage.Field("Content-Encoding", $0) }))
        message.content.kept = bytes
        message.content.size = bytes.count
        question.body = nil
        return message
    }

    private static func response(_ recorded: CapturedExchange, _ timing: Bool, isHead: Bool) -> HttpResponse {
        let response = recorded.replayed(isHead: isHead)
        let receive = CapturedTimings(of: recorded).receive
        guard timing, receive > 0, let bytes = response.content.bytes, !bytes.isEmpty else { return response }
        let isOpenEnded = recorded.kind == .sse || response.trailers != nil
        var timed = HttpResponse(
            response.status, fields: response.fields,
            source: PlayedContent(bytes, recorded.progress, receive: receive),
            length: isOpenEnded ? nil : bytes.count)
        timed.receivedReason = response.receivedReason
        timed.trailers = response.trailers
        return timed
    }
}

/// Content that is sent in pieces at the recorded times.
///
/// Unchecked: used on the loop of its exchange only.
private final class PlayedContent: ContentSource, @unchecked Sendable {
    private let bytes: [UInt8]
    /// The end of each piece, and its time in microseconds after the head.
    private var pieces: [(time: Int, end: Int)] = []
    private var next = 0
    private var sent = 0
    private var time = 0

    private static let longestWait = 3_600_000_000

    init(_ bytes: [UInt8], _ progress: [ContentProgress], receive: Int) {
        self.bytes = bytes
        for piece in progress where piece.size > pieces.last?.end ?? 0 && piece.size <= bytes.count {
            pieces.append((max(piece.time, pieces.last?.time ?? 0), piece.size))
        }
        // The end of the content has a time of its own.
        if pieces.last?.end ?? 0 < bytes.count || pieces.last?.time ?? 0 < receive {
            pieces.append((max(receive, pieces.last?.time ?? 0), bytes.count))
        }
    }

    func next(_ feed: ContentFeed) {
        guard next < pieces.count else { return feed.finish() }
        let piece = pieces[next]
        next += 1
        let wait = min(piece.time - time, PlayedContent.longestWait)
        time = piece.time
        let part = Array(bytes[sent..<piece.end])
        sent = piece.end
        if wait <= 0 { return feed.supply(part) }
        feed.after(.microseconds(wait)) { $0.supply(part) }
    }

    func cancelled() {}
}

extension Replay: FilteredWare {}

extension Replay: AnsweringWare {}

extension Replay: ConfigurableWare {
    public static let name: WareName = "replay"
    public static let about = WareAbout(
        "Answers requests with the responses of an archive (HAR 1.2).", source: "HAR 1.2, mitmproxy",
        example: #"""
            - replay: { file: conf/wares/orders.har, ignoreQuery: [_], missing: 404, order: loop }
              filter: "~u /orders"
            """#,
        details: #"""
            A request is answered if it has the parts in `match` in common with a recorded one, and the fields in
            `headers`. Where an archive has masked a secret, every value matches. On a reverse listener, the host of the
            URL counts only if the archive has several: recordings of another port or host are found, too. A request
            without a recording is handled as `missing` says: `forward` sends it on, `404` and `fail` (502) answer it.

            If several responses to a request were recorded, each comes in turn; then `order` decides: `last` repeats
            the last one, `loop` begins again, and with `once` the request is missing from then on.

            With `timing`, responses take as long as they were recorded, and events (SSE) come one by one. Fields of the
            response that the archive has masked are left out. A relative `file` is relative to the configuration file.
            Bodies above 1 MiB are not compared; with `missing: 404` or `fail`, those above 16 MiB are refused with 413.
            `filter` stands beside `if`, and is decided on the request.
            """#,
        otherNames: ["serverReplay", "playback", "vcr"])

    public init(options: inout OptionsReader) {
        var file: FilePath?
        var match = Part.allCases
        var headers: [FieldName] = []
        var ignoreQuery: [String] = []
        var missing = Missing.forward
        var order = Order.last
        var timing = false
        options.read("file", into: &file, doc: "the archive, read when the configuration is loaded; at most 256MiB")
        options.require("file")
        options.read("match", into: &match, doc: "parts that a request has in common with a recorded one")
        options.read("headers", into: &headers, doc: "fields that a request has in common with a recorded one")
        options.read("ignoreQuery", into: &ignoreQuery, doc: "query parameters that are not compared")
        options.read("missing", into: &missing, doc: "the answer to a request that the archive does not have")
        options.read("order", into: &order, doc: "which response comes when all recorded ones have been used")
        options.read("timing", into: &timing, doc: "takes as long as recorded")
        if headers.isEmpty { options.refuseEmpty("match", "write such as [method, url], or every request matches") }
        var matching = RecordedResponses.Matching()
        matching.method = match.contains(.method)
        matching.url = match.contains(.url)
        matching.body = match.contains(.body)
        matching.headers = headers
        matching.ignoredParameters = Set(ignoreQuery)
        var exchanges: [CapturedExchange] = []
        if let file, let bytes = LoadedFile.read(file.path, "file", upTo: Replay.mostFile, &options) {
            do throws(HarReader.Refusal) {
                exchanges = try HarReader(bytes).exchanges
            } catch {
                options.fail(at: "file", "\(file.path.quotedForErrors) is not an archive: \(error)")
            }
        }
        self.init(exchanges, matching, missing: missing, order: order, timing: timing)
        if let file, !options.isDescribing, !options.hasErrors, responses.count == 0 {
            options.warn(at: "file", "\(file.path.quotedForErrors) has no response that can be replayed")
        }
    }
}
