@testable import HttpWare

extension Fuzzing {
    /// A response's head is read the same however it comes, and goes downstream unambiguous.
    public static func responseHead(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let limits = limits(choice)
        let method = [HttpMethod.get, .head, .connect, .post][choice >> 1 & 3]
        let whole = read(wire, [wire.count], method, limits)
        let byByte = read(wire, Array(0...wire.count), method, limits)
        require(whole.text == byByte.text, "whole: \(whole.text)\nbyte by byte: \(byByte.text)")
        guard let response = whole.response else { return }

        let head = encode(response, method)
        let (framings, _) = checkHead(head)
        require(framings == 1 || response.content.isEmpty, "no framing in \(text(head))")
        var roomy = HeadLimits()
        roomy.head = 1 << 20
        let second = read(head, [head.count], method, roomy)
        guard let again = second.response else { fatalError("\(text(head)) is refused: \(second.text)") }
        require(again.status == response.status && again.content.extent == response.content.extent, text(head))
        require(again.reason ?? [] == response.reason ?? [] && again.upgrade == response.upgrade, text(head))
        require(!again.asksToAuthenticateConnection || response.asksToAuthenticateConnection, text(head))
        require(encode(again, method) == head, "\(text(head)) becomes \(text(encode(again, method)))")
    }

    private static func encode(_ response: HttpResponse, _ method: HttpMethod) -> [UInt8] {
        var options = HeadEncoder.ResponseOptions()
        options.framing = .ofResponse(
            sending: response.content.extent, status: response.status, to: method, version: .http11)
        options.upgrade = response.upgrade
        var response = response
        return encode { $0.write(&response, options) }
    }

    private static func read(
        _ wire: [UInt8], _ ends: [Int], _ method: HttpMethod, _ limits: HeadLimits
    ) -> (text: String, response: HttpResponse?) {
        var decoder = ResponseHeadDecoder()
        var response = HttpResponse(.ok)
        for end in ends {
            do {
                let length = try decoder.decode(
                    wire.span.bytes.extracting(first: end), into: &response, method: method, limits: limits)
                if let length {
                    let shown = """
                        \(length) \(response.status) \(text(response.reason ?? [])) \(response.version) \(response.content.extent)
                        \(response.isPersistent) \(decoder.framing) \(response.upgrade ?? "-") \(response.fields)
                        \(response.fields.received)
                        """
                    return (shown, response)
                }
            } catch {
                return ("\(error) \(response.fields)", nil)
            }
        }
        _ = "\(response.fields)"
        return ("more", nil)
    }
}
