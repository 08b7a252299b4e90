@testable import HttpWare

extension Fuzzing {
    /// A request's head is read the same however it comes, and goes upstream unambiguous.
    public static func requestHead(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let limits = limits(choice)
        let isReverse = choice & 2 != 0
        let whole = read(wire, [wire.count], limits, isReverse)
        let byByte = read(wire, Array(0...wire.count), limits, isReverse)
        require(whole.text == byByte.text, "whole: \(whole.text)\nbyte by byte: \(byByte.text)")
        if let request = whole.request {
            let shown = Redaction.target(request.receivedTarget)
            require(Redaction.target(shown) == shown, "\(shown) still shows something")
        }
        guard let request = whole.request, request.target.form != .authority else { return }

        let head = encode(request)
        let (framings, hosts) = checkHead(head)
        require(hosts == 1, "not one Host in \(text(head))")
        require(framings == 1 || request.content.isEmpty, "no framing in \(text(head))")
        var roomy = HeadLimits()
        roomy.head = 1 << 20
        let second = read(head, [head.count], roomy, isReverse)
        guard let again = second.request else { fatalError("\(text(head)) is refused: \(second.text)") }
        require(again.method == request.method && again.upstreamTarget == request.upstreamTarget, text(head))
        require(again.path == request.path && again.host == request.host ?? "x", text(head))
        require(again.content.extent == request.content.extent, text(head))
        require(again.isPersistent == request.isPersistent, text(head))
        require(again.fields.authenticateConnection == request.fields.authenticateConnection, text(head))
        require(encode(again) == head, "\(text(head)) becomes \(text(encode(again)))")
    }

    static func encode(_ request: HttpRequest) -> [UInt8] {
        var options = HeadEncoder.RequestOptions()
        options.framing = .ofRequest(
            sending: request.content.extent, method: request.method, statesLength: request.fields.statesLength)
        options.closes = !request.isPersistent
        options.upgrade = request.upgrade
        // HTTP/1.0 without Host: the service names one.
        if request.host == nil { options.host = "x" }
        var request = request
        return encode { $0.write(&request, options) }
    }

    private static func read(
        _ wire: [UInt8], _ ends: [Int], _ limits: HeadLimits, _ isReverse: Bool
    ) -> (text: String, request: HttpRequest?) {
        var decoder = RequestHeadDecoder()
        var request = HttpRequest()
        for end in ends {
            do {
                let length = try decoder.decode(
                    wire.span.bytes.extracting(first: end), into: &request, limits: limits, isReverse: isReverse)
                if let length {
                    let text = """
                        \(length) \(request.method) \(request.receivedTarget) \(request.version) \(request.authority?.description ?? "-")
                        \(request.path) \(request.upstreamTarget) \(request.content.extent) \(request.isPersistent)
                        \(request.expectsContinue) \(request.upgrade ?? "-") \(request.acceptsTrailers) \(request.fields)
                        \(request.fields.received)
                        """
                    return (text, request)
                }
            } catch {
                return ("\(error) \(partial(request))", nil)
            }
        }
        _ = partial(request)
        return ("more", nil)
    }

    /// A request that is not whole is still shown to wares.
    private static func partial(_ request: HttpRequest) -> String {
        "\(request.path) \(request.upstreamTarget) \(request.fields)"
    }
}
