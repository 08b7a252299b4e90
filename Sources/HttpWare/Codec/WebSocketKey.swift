/// `Sec-WebSocket-Key`, which shows in a handshake over HTTP/1.1 that the server understood it. RFC 6455 §4.1.
enum WebSocketKey {
    /// A new key: sixteen random bytes in base64.
    static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        let (high, low) = (generator.next(), generator.next())
        return Base64.encode(
            (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64($0 % 8 * 8)) })
    }
}
