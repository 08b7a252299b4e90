public import Capturing
public import HttpWare
import Synchronization

/// The messages that `break` holds in this process, for those who resume, edit or abort them. Safe to use from any thread.
public final class HeldMessages: Sendable {
    /// All of them.
    public static let shared = HeldMessages()

    private let state = Mutex<(last: Int, held: [Int: HeldMessage])>((0, [:]))

    init() {}

    /// The messages, those that have been held longest first.
    public var all: [HeldMessage] { state.withLock { $0.held.values.sorted { $0.id < $1.id } } }

    /// The message with that number; `nil` if it is not held, or not any more.
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

/// A message that is held, and what is known of it: secrets are masked.
public final class HeldMessage: Sendable {
    /// On which way it is.
    public enum Side: String, Sendable { case request, response }

    /// How the hold ends.
    enum Outcome: Sendable {
        /// It goes on, as it is or edited.
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
    /// Of a response.
    public let status: Int?
    public let since: WallTime
    /// The fields as they may be shown.
    public let fields: [CapturedMessage.Field]
    /// Whether the content is whole, so that other content can take its place.
    public let isContentEditable: Bool
    /// The fields that the gateway put tokens into, in lower case.
    let injected: [String]
    /// A token in the request is for the place that it goes to now.
    let carriesToken: Bool
    /// The fields as they are, for those whose values are masked.
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
        capture = exchange.captureNumber
        method = request.method.name
        url = redaction.url(of: request)
        status = response?.status.code
        since = exchange.wallNow
        fields = Array(redaction.shown(message))
        originals = message.map { CapturedMessage.Field($0.name, $0.value) }
        self.isContentEditable = isContentEditable
        injected = side == .request ? exchange.injectedFields.map { $0.text.lowercased() } : []
        carriesToken = side == .request && exchange.carriesToken
    }

    /// Lets it go on, edited if an edit is given. Throws if the edit is invalid or not allowed. Answers false if it is not held any
    /// more.
    public func resume(_ edit: MessageEdit? = nil) throws(MessageEdit.Mistake) -> Bool {
        guard let edit else { return wait.resume(returning: .resume(nil)) }
        return wait.resume(returning: .resume(try edit.checked(for: self)))
    }

    /// Ends its exchange: the client's connection, or its stream, is reset. Answers false if it is not held any more.
    public func abort() -> Bool { wait.resume(returning: .abort) }

    func outcome(within timeout: Duration) async throws -> Outcome {
        try await wait.value(within: timeout, else: .late)
    }

    /// The values that stand behind fields that were shown masked: a field that comes back as it was shown keeps its value.
    func unmasked(_ edited: [CapturedMessage.Field]) -> [CapturedMessage.Field] {
        var used: Set<Int> = []
        return edited.map { field in
            for (place, shown) in fields.enumerated() where !used.contains(place) {
                if shown.name.lowercased() == field.name.lowercased(), shown.value == field.value {
                    used.insert(place)
                    return CapturedMessage.Field(field.name, originals[place].value)
                }
            }
            return field
        }
    }

    /// The shown lines of a field.
    func shown(_ name: String) -> [String] { fields.filter { $0.name.lowercased() == name }.map(\.value) }
}
