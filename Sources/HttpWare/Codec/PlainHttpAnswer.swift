/// What a client is told that speaks HTTP in clear text where TLS is spoken, and could not read an alert: 400.
/// RFC 9110 §15.5.1.
enum PlainHttpAnswer {
    static let bytes: [UInt8] = {
        let body =
            "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,\"detail\":\"this port speaks TLS; ask with https\"}\n"
        let head =
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: \(body.utf8.count)\r\n"
            + "Connection: close\r\n\r\n"
        return Array((head + body).utf8)
    }()
}
