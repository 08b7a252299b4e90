extension WebSocketKey {
    /// The value of `Sec-WebSocket-Accept` for this key, from a server that accepts the WebSocket. RFC 6455 §4.2.2.
    static func answer(to key: String) -> String {
        Base64.encode(Sha1Digest(of: (key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8).bytes)
    }
}
