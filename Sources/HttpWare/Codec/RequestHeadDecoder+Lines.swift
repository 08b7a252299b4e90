extension RequestHeadDecoder {
    /// Reads a head whose lines are at hand, the request line first, as strictly as one that a client sent.
    static func decode(
        lines: [String], into request: inout HttpRequest, limits: HeadLimits, isReverse: Bool
    ) throws(GatewayError) {
        let head = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        var decoder = RequestHeadDecoder()
        let length = try decoder.decode(head.span.bytes, into: &request, limits: limits, isReverse: isReverse)
        guard length == head.count else { throw .malformed("a line of the head holds a line end") }
    }
}
