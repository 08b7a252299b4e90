/// `Sec-WebSocket-Key`, which shows in a handshake over HTTP/1.1 that the server understood it. RFC 6455 §4.1.
enum WebSocketKey {
    /// Sixteen random bytes.
    static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        let (high, low) = (generator.next(), generator.next())
        return base64((0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64($0 % 8 * 8)) })
    }

    /// RFC 4648 §4.
    static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                text.append(place <= group.count ? alphabet[bits >> (18 - 6 * place) & 63] : 0x3d)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
