public import Capturing
public import HttpWare
import Synchronization

/// Writes exchanges to an archive (HAR 1.2) while they pass.
public struct Record: Middleware, Postware, ExchangeObserver {
    /// The archive's path.
    public let file: FilePath
    /// The masking and the size limits of records.
    private let settings: CaptureSettings
    private let recorder: SharedRecorder
    private var filter: CaptureFilter?

    public var failsOpen: Bool { true }
    public var holdsState: Bool { true }

    /// Masks the fields in `redact`, and query parameters with the names of secrets. An empty list masks only values that the
    /// gateway itself added to requests.
    public init(file: FilePath, maxSize: ByteCount = .mebibytes(64), redact: [FieldName] = Redaction.fields) {
        self.file = file
        var settings = CaptureSettings()
        settings.redacted = redact
        settings.content = .mebibytes(16)
        self.settings = settings
        recorder = SharedRecorder.of(file.path, maxSize: maxSize.bytes)
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if exchange.isDryRun { return .pass }
        let traffic = RecordedTraffic(recorder.recorder, settings, request, exchange)
        exchange[Recordings.self, default: [:]][ObjectIdentifier(recorder)] = traffic
        if let bytes = request.content.bytes {
            traffic.request.add(bytes)
        } else if !request.content.isEmpty {
            exchange.filterRequestContent(with: traffic.request)
        }
        return .pass
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let traffic = exchange[Recordings.self]?[ObjectIdentifier(recorder)] else { return .pass }
        traffic.began(response, exchange)
        if let bytes = response.content.bytes {
            traffic.response.add(bytes)
        } else if !response.content.isEmpty {
            exchange.filterResponseContent(with: traffic.response)
        }
        return .pass
    }

    public func ended(_ exchange: Exchange) {
        guard let traffic = exchange[Recordings.self]?.removeValue(forKey: ObjectIdentifier(recorder)) else { return }
        traffic.ended(exchange, filter)
    }

    /// The recordings of an exchange by recorder, because a chain can have several.
    private enum Recordings: ExchangeKey { typealias Value = [ObjectIdentifier: RecordedTraffic] }
}

extension Exchange {
    fileprivate subscript<Key: ExchangeKey>(key: Key.Type, default value: Key.Value) -> Key.Value {
        get { self[key] ?? value }
        set { self[key] = newValue }
    }
}

/// The recording of one exchange. Used on its loop only.
private final class RecordedTraffic {
    let request: RecordedContent
    let response: RecordedContent
    private let recorder: HarRecorder
    private let redaction: CaptureRedaction
    private var captured: CapturedExchange
    private let started: LoopInstant
    private var answered: LoopInstant?

    init(_ recorder: HarRecorder, _ settings: CaptureSettings, _ request: HttpRequest, _ exchange: Exchange) {
        self.recorder = recorder
        redaction = CaptureRedaction(settings)
        let redaction = CaptureRedaction(settings, exchange)
        captured = CapturedExchange(
            id: exchange.captureNumber ?? 0, started: exchange.wallNow, method: request.method.name,
            url: redaction.url(exchange.writtenUri(of: request)), version: "HTTP/\(request.version.number)",
            listener: exchange.listener,
            request: CapturedMessage(fields: redaction.shown(request.fields)))
        captured.client = exchange.peer.map { "\($0)" }
        captured.route = exchange.route
        if request.upgrade?.lowercased() == "websocket" { captured.kind = .websocket }
        self.request = RecordedContent(recorder, settings.content.bytes)
        response = RecordedContent(recorder, settings.content.bytes)
        started = exchange.now
    }

    deinit { recorder.giveBack(request.takeReserved() + response.takeReserved()) }

    func began(_ response: HttpResponse, _ exchange: Exchange) {
        let head = exchange.now
        answered = head
        self.response.restart()
        captured.status = response.status.code
        captured.reason = response.receivedReason
        captured.isReasonRaw = response.isReasonRaw
        captured.response = CapturedMessage(fields: redaction.shown(response.fields))
        captured.server = exchange.upstreamAddress
        captured.service = exchange.service
        let type = response.fields[.contentType]?.prefix { $0 != ";" }.lowercased()
        if type == "text/event-stream" {
            captured.kind = .sse
            // Coded content is written decoded, so its pieces would have other lengths.
            if !response.fields.contains("Content-Encoding") {
                self.response.clock = { [unowned exchange] in Int((exchange.now.nanoseconds - head.nanoseconds) / 1000)
                }
            }
        } else if type?.hasPrefix("application/grpc") == true {
            captured.kind = .grpc
        }
    }

    func ended(_ exchange: Exchange, _ filter: CaptureFilter?) {
        response.clock = nil
        captured.isOpen = false
        captured.isCutOff = exchange.end != .completed
        captured.response?.trailers = exchange.responseTrailers.map(redaction.shown) ?? []
        captured.request.trailers = exchange.requestTrailers.map(redaction.shown) ?? []
        captured.fault = exchange.failure.map { "\($0.fault)" }
        captured.rules = exchange.rules
        captured.duration = exchange.now.nanoseconds - started.nanoseconds
        captured.request.content = request.content
        captured.response?.content = response.content
        captured.progress = response.progress
        var timings = CapturedTimings()
        let head = answered ?? exchange.now
        timings.wait = Int((head.nanoseconds - started.nanoseconds) / 1000)
        timings.receive = Int((exchange.now.nanoseconds - head.nanoseconds) / 1000)
        captured.timings = timings
        if let filter, !filter.matches(captured) { return }
        recorder.add(captured, redaction, reserved: request.takeReserved() + response.takeReserved())
    }
}

/// Copies content while it passes. Used on its loop only.
private final class RecordedContent: ContentFilter {
    let keepsLength = true
    private(set) var content = CapturedContent()
    private(set) var progress: [ContentProgress] = []
    /// The microseconds since the response's head; `nil` if the times of pieces are not recorded.
    var clock: (() -> Int)?
    private let recorder: HarRecorder
    private let limit: Int
    private var reserved = 0

    private static let mostProgress = 10_000

    init(_ recorder: HarRecorder, _ limit: Int) {
        self.recorder = recorder
        self.limit = limit
    }

    /// Starts again for another response, which replaces the former one.
    func restart() {
        content = CapturedContent()
        progress = []
    }

    func takeReserved() -> Int {
        defer { reserved = 0 }
        return reserved
    }

    func add(_ bytes: [UInt8]) { bytes.withUnsafeBytes { add($0) } }

    private func add(_ bytes: UnsafeRawBufferPointer) {
        content.size += bytes.count
        let fits = content.dropped == 0 && content.kept.count + bytes.count <= limit && recorder.reserve(bytes.count)
        if fits {
            reserved += bytes.count
            content.kept.append(contentsOf: bytes)
            if let clock, progress.count < RecordedContent.mostProgress {
                progress.append(ContentProgress(time: max(0, clock()), size: content.kept.count))
            }
        } else {
            content.dropped += bytes.count
        }
    }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        add(input)
        output.append(contentsOf: input)
    }
}

/// The recorder of a file, shared by all wares that write to it. When the last of them is released, the rest is written.
final class SharedRecorder: WareFinisher {
    let recorder: HarRecorder
    private let path: String

    private struct Weak {
        weak var recorder: SharedRecorder?
    }

    private static let all = Mutex<[String: Weak]>([:])

    static func of(_ path: String, maxSize: Int) -> SharedRecorder {
        all.withLock { all in
            all = all.filter { $0.value.recorder != nil }
            if let known = all[path]?.recorder { return known }
            let made = SharedRecorder(path, maxSize)
            all[path] = Weak(recorder: made)
            return made
        }
    }

    private init(_ path: String, _ maxSize: Int) {
        self.path = path
        recorder = HarRecorder(path: path, maxSize: maxSize)
    }

    deinit { recorder.finish() }

    func finish() async { await recorder.finishWriting() }
}

extension Record: FinishingWare {
    public var finisher: (any WareFinisher)? { recorder }
}

extension Record: MessageShower {}

extension Record: FilteredWare {
    public static var filtersAtEnd: Bool { true }

    public func filtered(by filter: CaptureFilter) -> Record {
        var copy = self
        copy.filter = filter
        return copy
    }
}

extension Record: ConfigurableWare {
    public static let name: WareName = "record"
    public static let about = WareAbout(
        "Writes exchanges to an archive (HAR 1.2) while they pass.", source: "HAR 1.2, mitmproxy, Charles",
        example: #"""
            - record: { file: /var/tmp/orders.har, maxSize: 16MiB }
              filter: "~u /orders & ! ~c 200"
            """#,
        details: #"""
            The file is a whole archive whenever it is opened, and has an exchange at most two seconds after its end. It
            is replaced by a new one when the first exchange after a start is written. If it has reached `maxSize`,
            further exchanges are left out, and the log says so. Content above 16 MiB is left out, too.

            Credentials are masked: the fields in `redact`, and what is named like a secret in the query, in forms, in
            JSON and in events. `redact: []` writes all but the tokens that the gateway itself put into requests. The
            file can be read by its owner only.

            The ware records messages as they are at its place in the chain: place it first to record what clients send
            and get. `filter` stands beside `if`, and is decided when the exchange has ended. `replay` answers with the
            archive.
            """#,
        otherNames: ["har", "capture", "dump", "save"])

    public init(options: inout OptionsReader) {
        var file: FilePath?
        var maxSize = ByteCount.mebibytes(64)
        var redact = Redaction.fields
        options.read("file", into: &file, doc: "the archive that is written")
        options.require("file")
        options.read(
            "maxSize", into: &maxSize, in: .kibibytes(4) ... .gibibytes(16), doc: "maximum size of the archive")
        options.read("redact", into: &redact, doc: "fields whose values are masked; [] masks nothing")
        self.init(file: file ?? FilePath("record.har"), maxSize: maxSize, redact: redact)
    }
}
