import FoundationEssentials
@testable import HttpWare
@testable import HttpWareClient

/// Fields of responses that a client reads: cookies and links.
extension Fuzzing {
    /// Lines of `Set-Cookie` from four addresses, and of `Link`. Whatever was stored goes only where it may, as a field that can be sent, and
    /// comes back the same from an encoded jar.
    public static func clientFields(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let lines = wire.split(separator: 0x0a).map { String(decoding: $0, as: UTF8.self) }
        let targets = ["https://a.example/x/y", "http://b.a.example/x", "https://10.0.0.1/", "https://a.co.uk/"]
        guard let requests = try? targets.map({ try HttpRequest(.get, $0) }) else { return }
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let jar = CookieJar { now }
        for (index, line) in lines.enumerated() { jar.take(line, from: requests[(choice + index) % 4]) }
        let cookies = jar.cookies
        require(cookies.count <= lines.count, "more cookies than lines")
        for cookie in cookies {
            require(cookie.name.utf8.count + cookie.value.utf8.count <= 4096, "a cookie is too long")
            require(cookie.expires.map { $0 > now && $0 <= now + 400 * 86400 } ?? true, "a cookie lives too long")
            let isOwn = ["a.example", "b.a.example", "10.0.0.1", "a.co.uk"].contains(cookie.domain)
            require(isOwn && cookie.path.hasPrefix("/"), "\(cookie) is of another's")
            if cookie.name.lowercased().hasPrefix("__host-") {
                require(cookie.isSecure && cookie.isHostOnly && cookie.path == "/", "\(cookie) breaks its promise")
            }
        }
        for request in requests {
            guard let line = jar.line(for: request) else { continue }
            var fields = HttpFields()
            require((try? fields.set(.cookie, to: line)) != nil, "\(line.debugDescription) cannot be sent")
            let again = CookieJar(cookies) { now }
            require(again.line(for: request) == line, "another line after the jar was written")
        }
        for cookie in cookies where cookie.isSecure {
            require(!cookie.goes(to: CookiePlace(host: cookie.domain, path: "/", isSecure: false)), "sent in the clear")
        }
        wire.withUnsafeBytes { bytes in
            var reader = CookieReader(bytes, 0..<bytes.count)
            var whole: [[UInt8]] = []
            while let piece = reader.next() { whole.append(Array(bytes[piece.whole])) }
            require(Array(whole.joined(separator: [0x3b])) == wire, "the pieces of a cookie are not all bytes")
        }
        let links = WebLinks(lines)
        if let next = links["next"] { require(lines.contains { $0.contains(next) }, "a target that no line has") }
    }
}
