public import Capturing
public import HttpWare
import Synchronization

/// The messages that `break` holds in this process, for resuming, editing or aborting them. Safe to use from any thread.
public final class HeldMessages: Sendable {
    /// The held messages of the process.
    public static let shared = HeldMessages()

    private let state = Mutex<(last: Int, held: [Int: HeldMessage])>((0, [:]))

    init() {}

    /// The messages, with the longest held first.
    public var all: [HeldMessage] { state.withLock { $0.held.values.sorted { $0.id < $1.id } } }

    /// The message with that number; `nil` if it is not held.
    public func find(_ id: Int) -> HeldMessage? { state.withLock { $0.held[id] } }

    func add(_ make: (Int) -> HeldMessage) -> HeldMessage {
        state.withLock { state in
            state.last += 1
            let message = make(state.last)
            state.held[state.last] = message
            return message
        }
    }

    func remove(_ message: HeldMessage) { state.withLock { $0.held[message.id] = nil } }
}

/// A held message, as it may be shown: secrets are masked.
public final class HeldMessage: Sendable {
    /// Whether the message is a request or a response.
    public enum Side: String, Sendable { case request, response }

    /// How the hold ends.
    enum Outcome: Sendable {
        /// The message continues, with edits if there are any.
        case resume(MessageEdit?)
        case abort
        case late
    }

    public let id: Int
    public let side: Side
    /// The number of the exchange's capture.
    public let capture: Int?
    public let method: String
    public let url: String
    /// The status of a response; `nil` for a request.
    public let status: Int?
    public let since: WallTime
    /// The fields, with secrets masked.
    public let fields: [CapturedMessage.Field]
    /// Whether the content is complete, so that it can be replaced.
    public let isContentEditable: Bool
    /// The fields that the gateway put tokens into, in lower case.
    let injected: [String]
    /// Whether the request carries a token for its current target.
    let carriesToken: Bool
    /// The fields with their true values, for restoring masked values.
    private let originals: [CapturedMessage.Field]
    private let wait = LoopWait<Outcome>()

    init(
        id: Int, side: Side, request: HttpRequest, response: HttpResponse?, isContentEditable: Bool,
        _ exchange: Exchange
    ) {
        self.id = id
        self.side = side
        let redaction = CaptureRedaction(CaptureSettings(), side == .request ? exchange : nil)
        let message = response?.fields ?? request.fields
        capture = exchange.showCapture()
        method = request.method.name
        url = redaction.url(exchange.writtenUri(of: request))
        status = response?.status.code
        since = exchange.wallNow
        fields = Array(redaction.shown(message))
        originals = CaptureRedaction.plain(message)
        self.isContentEditable = isContentEditable
        injected = side == .request ? exchange.injectedFields.map { $0.text.lowercased() } : []
        carriesToken = side == .request && exchange.carriesToken
    }

    /// Continues the message, with the edit if there is one. Throws if the edit is invalid or not allowed. Returns false if the
    /// message is no longer held.
    public func resume(_ edit: MessageEdit? = nil) throws(MessageEdit.Mistake) -> Bool {
        guard let edit else { return wait.resume(returning: .resume(nil)) }
        return wait.resume(returning: .resume(try edit.checked(for: self)))
    }

    /// Ends the exchange by resetting the client's connection or stream. Returns false if the message is no longer held.
    public func abort() -> Bool { wait.resume(returning: .abort) }

    func outcome(within timeout: Duration) async throws -> Outcome {
        try await wait.value(within: timeout, else: .late)
    }

    /// Restores masked values: a field that comes back as it was shown gets its true value.
    func unmasked(_ edited: [CapturedMessage.Field]) -> [CapturedMessage.Field] {
        var used: Set<Int> = []
        return edited.map { field in
            for (place, shown) in fields.enumerated() where !used.contains(place) {
                if shown.name.lowercased() == field.name.lowercased(), shown.value == field.value {
                    used.insert(place)
                    return CapturedMessage.Field(field.name, bytes: originals[place].bytes)
                }
            }
            return field
        }
    }

    /// The shown lines of a field.
    func shown(_ name: String) -> [String] { fields.filter { $0.name.lowercased() == name }.map(\.value) }
}
