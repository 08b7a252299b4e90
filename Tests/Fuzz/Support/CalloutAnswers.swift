@testable import GatewayWares
@testable import HttpWare

/// Answers of programs: what is accepted can be applied, and leaves messages that can be sent.
extension Fuzzing {
    public static func calloutAnswers(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        if let hello = try? CalloutHello(wire) {
            let wants = hello.applied(to: CalloutWants())
            for size in [wants.requestContent, wants.responseContent].compactMap(\.self) {
                require((1...CalloutWants.largest.bytes).contains(size), "\(size) bytes")
            }
        }
        let half: CalloutMessage.Half = choice % 2 == 0 ? .request : .response
        guard let answer = try? CalloutAnswer(wire, to: half) else { return }
        require((try? JsonValue(wire))?.members != nil, "accepted: \(text(wire))")
        guard let loop = calloutLoop else { return }
        let exchange = Exchange(loop: loop)
        switch answer.decision {
        case .drop: return
        case .respond(let made): checkSendable(made.response.fields, wire)
        case .edits(let edits):
            if half == .response {
                var response = HttpResponse(.ok, fields: ["ETag": "\"1\"", "Set-Cookie": "a=b"], content: .text("old"))
                guard (try? edits.apply(to: &response, in: exchange)) != nil else { return }
                require((200...599).contains(response.status.code), "\(response.status)")
                checkSendable(response.fields, wire)
            } else {
                guard var request = try? HttpRequest(.post, "http://a.example/b?c", content: .text("old")) else {
                    return
                }
                let before = request
                guard (try? edits.apply(to: &request, in: exchange)) != nil else {
                    require(
                        request.targetUri() == before.targetUri(), "a wrong answer changed the request: \(text(wire))")
                    return
                }
                require(request.method != .connect && request.path.hasPrefix("/"), "\(text(wire))")
                require(
                    request.upstreamTargetBytes.allSatisfy { $0 > 0x20 && $0 != 0x7f },
                    "\(text(wire)) made \(text(request.upstreamTargetBytes))")
                checkSendable(request.fields, wire)
            }
        }
    }

    /// It never runs.
    private static let calloutLoop = try? EventLoop(name: "fuzz")

    private static func checkSendable(_ fields: HttpFields, _ wire: [UInt8]) {
        for (name, value) in fields.rawLines {
            require(!name.isGatewayOwned, "\(text(wire)) sets \(name.text)")
            require(!value.contains { $0 == 0x0d || $0 == 0x0a || $0 == 0 }, "\(text(wire)) breaks a line")
        }
    }
}
