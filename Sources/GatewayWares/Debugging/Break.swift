public import Capturing
public import HttpWare

/// Holds messages until they are resumed, edited or aborted through the admin listener.
public struct Break: EitherSided {
    /// How long a message is held; then it goes on unchanged.
    public var timeout: Duration
    /// The maximum number of messages that are held at once; further ones pass.
    public var max: Int
    /// The maximum size of content that can be edited.
    public var maxBytes: ByteCount
    private let places = HeldPlaces()

    public var contentNeed: ContentNeed { .ifWhole(upTo: maxBytes.bytes) }

    public init(timeout: Duration = .seconds(300), max: Int = 20, maxBytes: ByteCount = .mebibytes(1)) {
        self.timeout = timeout
        self.max = max
        self.maxBytes = maxBytes
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        // A dry run does not wait, but reports the wait.
        if exchange.isDryRun { return .wait { _, _ in .pass } }
        guard places.take(atMost: max) else {
            exchange.note("not held, \(max) are", asDecision: false)
            return .pass
        }
        let isEditable: Bool
        if request.content.isEmpty {
            isEditable = request.upgrade == nil
        } else {
            let (bytes, isWhole) = exchange.beginningOfContent
            isEditable = isWhole && bytes.count <= maxBytes.bytes
        }
        let held = HeldMessages.shared.add { id in
            HeldMessage(
                id: id, side: .request, request: request, response: nil, isContentEditable: isEditable, exchange)
        }
        return .wait { request, exchange in
            defer { letGo(held) }
            switch try await held.outcome(within: timeout) {
            case .abort:
                exchange.note("aborted by hand", asDecision: true)
                exchange.breakOff()
                return .abort(with: HttpResponse(.badGateway))
            case .resume(let edit):
                exchange.note(edit == nil ? "resumed" : "edited", asDecision: true)
                try edit?.apply(to: &request, isForward: exchange.isForward)
            case .late: exchange.note("resumed by timeout", asDecision: true)
            }
            return .pass
        }
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if exchange.isDryRun { return .wait { _, _ in .pass } }
        guard let request = exchange.request, !exchange.isBrokenOff else { return .pass }
        guard places.take(atMost: max) else {
            exchange.note("not held, \(max) are", asDecision: false)
            return .pass
        }
        let bytes = response.content.bytes
        let isEditable =
            response.status != .switchingProtocols
            && (response.content.isEmpty || bytes.map { $0.count <= maxBytes.bytes } ?? false)
        let held = HeldMessages.shared.add { [response] id in
            HeldMessage(
                id: id, side: .response, request: request, response: response, isContentEditable: isEditable, exchange)
        }
        return .wait { response, exchange in
            defer { letGo(held) }
            switch try await held.outcome(within: timeout) {
            case .abort:
                exchange.note("aborted by hand", asDecision: true)
                exchange.breakOff()
            case .resume(let edit):
                exchange.note(edit == nil ? "resumed" : "edited", asDecision: true)
                try edit?.apply(to: &response)
            case .late: exchange.note("resumed by timeout", asDecision: true)
            }
            return .pass
        }
    }

    private func letGo(_ held: HeldMessage) {
        HeldMessages.shared.remove(held)
        places.giveBack()
    }
}

extension Break: FilteredWare {}
extension Break: MessageShower {}

extension Break: ConfigurableWare {
    public static let name: WareName = "break"
    public static let about = WareAbout(
        "Holds messages until they are resumed, edited or aborted through the admin listener.",
        source: "mitmproxy, Charles",
        example: #"""
            - break: { timeout: 10m }
              filter: "~m POST & ~u /orders"
            """#,
        details: #"""
            Among middlewares it holds requests, among postwares it holds responses. `\#(ProgramName.text) break ls` lists the held
            messages; `\#(ProgramName.text) break resume ID` lets one go on, edited with `--edit`; `\#(ProgramName.text) break abort ID` resets
            the connection of its client, or its stream. After `timeout` a message goes on unchanged.

            Content is read before the message is held if it has at most `maxBytes` and comes without a pause; only then
            other content can take its place. Larger content, events and upgrades wait where they come from, and only
            the head can be edited. A request that is held does not count against the time limits of its origin server;
            the limit `total` of the exchange goes on. A client that leaves ends the hold.

            If a token was put into a request, an edit can change neither the field nor the authority. Fields that are
            masked where they are shown keep their values if they come back as they were.
            """#,
        otherNames: ["breakpoint", "intercept", "hold", "pause"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "timeout", into: &timeout, in: .milliseconds(1) ... .seconds(86_400),
            doc: "how long a message is held; then it goes on unchanged")
        options.read("max", into: &max, in: 1...1000, doc: "maximum number of messages held at once; others pass")
        options.read(
            "maxBytes", into: &maxBytes, in: .bytes(0) ... .mebibytes(1),
            doc: "maximum size of content that can be edited")
    }
}
