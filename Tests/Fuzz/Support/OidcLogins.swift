@testable import Authentication
@testable import Credentials
@testable import HttpWare
@testable import GatewayWares

extension Fuzzing {
    private static let cookies = OidcCookies(
        "s", secrets: [Secret("a secret of the fuzzer, thirty-two bytes")], issuer: "https://a.example", clientId: "app"
    )
    private static let session = OidcSession(
        id: "i", began: 1, due: 2, expires: 3, idToken: Secret("a.e30.c"), refreshToken: Secret("r"))
    /// The value of a session's cookie.
    private static let value: [UInt8] =
        cookies.seal(session.json, as: .session).map { Array("1\(OidcCookies.text(of: $0))".utf8) } ?? []

    /// The cookies, the way back and the metadata of `oidcLogin`: nothing opens that was not sealed here, no cookie of the ware goes
    /// upstream, and no page to return to is of another host.
    public static func oidcLogin(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, bytes) = input(start, count) else { return }
        switch choice & 3 {
        case 0: readCookies(bytes)
        case 1:
            var changed = value
            for (place, byte) in zip(bytes.indices, bytes) { changed[place % changed.count] ^= byte }
            let opened = cookies.open(text: changed.dropFirst(), as: .session)
            require((opened != nil) == (changed.dropFirst() == value.dropFirst()), "opened what nobody sealed")
        case 2:
            if let read = OidcSession(json: bytes) {
                require(OidcSession(json: read.json) == read, "a session is read as another one")
            }
            if let read = OidcPendingLogin(json: bytes) {
                require(OidcPendingLogin(json: read.json) == read, "a login is read as another one")
            }
            if let issuer = EndpointUrl("https://a.example") { _ = try? ProviderMetadata(bytes, of: issuer) }
        default: readAnswer(String(decoding: bytes, as: UTF8.self))
        }
    }

    private static func readCookies(_ bytes: [UInt8]) {
        guard var request = try? HttpRequest(.get, "/"),
            (try? request.fields.append(.cookie, String(decoding: bytes, as: UTF8.self))) != nil
        else { return }
        request.fields.receivedCount = request.fields.lines.count
        for isSecure in [false, true] {
            var copy = request
            let shown = cookies.take(from: &copy, isSecure: isSecure) { _ in nil }
            for name in ["s", "s.1", "__Host-s", "__Host-s.3"] {
                require(
                    copy.fields.cookieValues(name).isEmpty && copy.fields.received.cookieValues(name).isEmpty,
                    "a cookie of the ware is left")
            }
            require(copy.fields.cookieValues("t") == request.fields.cookieValues("t"), "another cookie was changed")
            if let text = shown.session { _ = cookies.open(text: text.dropFirst(), as: .session) }
            for login in shown.logins { _ = cookies.removal(ofLogin: login.suffix, isSecure: isSecure) }
        }
    }

    private static func readAnswer(_ text: String) {
        let target = OidcPendingLogin.returnTarget(text)
        require(target.hasPrefix("/") && !target.hasPrefix("//") && !target.hasPrefix("/\\"), "a page of another host")
        guard let request = try? HttpRequest(.get, "/callback?\(text)"), let answer = OidcLogin.ProviderAnswer(request)
        else { return }
        require((answer.code == nil) != (answer.error == nil), "an answer is both")
    }
}
