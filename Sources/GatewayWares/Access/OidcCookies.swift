import Credentials
import HttpWare

/// The cookies of `oidcLogin`: their names, their sealing, and their parts.
///
/// Over TLS, a name begins with `__Host-`, so that no other host and no connection in clear text can set the cookie
/// (RFC 6265bis §4.1.3.2). The first character of a session's value is the number of its parts. The rest is the sealed
/// session in base64url, split into `NAME`, `NAME.1` and so on. The cookie of a pending login is named `NAME.login-`,
/// followed by the beginning of the login's state.
struct OidcCookies: Sendable {
    /// The kind of a sealed value. A value of one kind cannot be opened as another kind.
    enum Kind: String {
        /// A session in the client's cookies.
        case session
        /// The id of a session in a store.
        case reference
        /// A session in a store, or on its way from one gateway to another.
        case stored
        /// A pending login.
        case login
    }

    /// The ware's cookies in a request.
    struct Shown {
        /// The remembered session; `nil` if no session is remembered under this cookie.
        var known: OidcAdmission?
        /// The joined value of the session's cookies. `nil` if there is no session, a part is missing or repeated, or
        /// `known` was found by its only part.
        var session: [UInt8]?
        /// The indices of the parts in the request.
        var parts: [Int] = []
        /// The pending logins: the ends of their cookies' names, and the values.
        var logins: [(suffix: String, value: [UInt8])] = []

        var isEmpty: Bool { parts.isEmpty }
    }

    static let mostParts = 4
    /// A browser keeps cookies of "at least 4096 bytes", with name, value and attributes. RFC 6265 §6.1.
    private static let longest = 4096
    /// The maximum number of pending logins in one browser; another one replaces the oldest.
    private static let mostLogins = 4
    /// The maximum number of pending logins that are read from a request.
    private static let mostLoginsShown = 32

    let name: String
    private let keys: [SealingKey]
    private let context: String

    /// The cookies with this name. The first secret seals; each secret opens. A value opens only for the client and the
    /// issuer for which it was sealed.
    init(_ name: String, secrets: [Secret], issuer: String, clientId: String) {
        self.name = name
        keys = secrets.map { SealingKey(Array($0.revealed.utf8), for: "oidcLogin") }
        context = Digest256(of: [issuer, clientId]).hex
    }

    // MARK: Sealing

    func seal(_ bytes: [UInt8], as kind: Kind) -> [UInt8]? {
        keys.first?.seal(bytes, context: Array("\(kind) \(context)".utf8))
    }

    func open(_ bytes: [UInt8], as kind: Kind) -> [UInt8]? {
        let context = Array("\(kind) \(context)".utf8)
        for key in keys { if let opened = key.open(bytes, context: context) { return opened } }
        return nil
    }

    /// Opens a cookie's value in base64url; `nil` if it was not sealed here.
    func open(text: some Collection<UInt8>, as kind: Kind) -> [UInt8]? {
        Base64.decodeUrl(text).flatMap { open($0, as: kind) }
    }

    // MARK: Requests

    private enum Place: Equatable {
        case part(Int)
        case login(String)
    }

    /// Removes all cookies of the ware from the request. Cookies for the other scheme are removed, but not read.
    /// `known` finds a remembered session by the digest of its value.
    func take(from request: inout HttpRequest, isSecure: Bool, _ known: (Digest256) -> OidcAdmission?) -> Shown {
        var shown = Shown()
        var parts: [(index: Int, value: [UInt8])] = []
        request.fields.takeCookies { cookie, value in
            let hasPrefix = cookie.starts(with: Self.prefix.utf8)
            let rest = UnsafeRawBufferPointer(rebasing: cookie[(hasPrefix ? Self.prefix.utf8.count : 0)...])
            guard rest.starts(with: name.utf8), let place = Self.place(rest.dropFirst(name.utf8.count)) else {
                return false
            }
            guard hasPrefix == isSecure else { return true }
            switch place {
            case .part(let index):
                shown.parts.append(index)
                // Nearly all sessions have one part and are remembered.
                if index == 0, value.first == UInt8(ascii: "1"), shown.known == nil,
                    let found = known(Digest256(of: value))
                {
                    shown.known = found
                } else {
                    parts.append((index, Array(value)))
                }
            case .login(let suffix):
                if shown.logins.count < Self.mostLoginsShown { shown.logins.append((suffix, Array(value))) }
            }
            return true
        }
        if shown.known != nil {
            // If the cookie occurs twice, it is unclear which value is valid.
            if parts.contains(where: { $0.index == 0 }) { shown.known = nil }
            return shown
        }
        guard let text = Self.join(parts) else { return shown }
        shown.session = text
        // A session with several parts is remembered under the digest of the joined value.
        if text.first != UInt8(ascii: "1") { shown.known = text.withUnsafeBytes { known(Digest256(of: $0)) } }
        return shown
    }

    private static let prefix = "__Host-"

    /// The meaning of a cookie by the rest of its name, after the ware's own name; `nil` for another cookie.
    private static func place(_ rest: Slice<UnsafeRawBufferPointer>) -> Place? {
        if rest.isEmpty { return .part(0) }
        guard rest.first == UInt8(ascii: ".") else { return nil }
        let word = rest.dropFirst()
        if word.count == 1, let digit = word.first, (0x31..<0x30 + UInt8(mostParts)).contains(digit) {
            return .part(Int(digit) - 0x30)
        }
        guard word.starts(with: loginWord.utf8) else { return nil }
        return .login(String(decoding: word.dropFirst(loginWord.utf8.count), as: UTF8.self))
    }

    private static let loginWord = "login-"

    /// Joins as many parts as the first part states; `nil` if one is missing or repeated, or the value is too long.
    /// Further parts, left over from an earlier session, are ignored.
    private static func join(_ parts: [(index: Int, value: [UInt8])]) -> [UInt8]? {
        func only(_ index: Int) -> [UInt8]? {
            let found = parts.filter { $0.index == index }
            return found.count == 1 ? found[0].value : nil
        }
        guard var text = only(0), let digit = text.first, (0x31...0x30 + UInt8(mostParts)).contains(digit) else {
            return nil
        }
        for index in 1..<Int(digit - 0x30) {
            guard let part = only(index) else { return nil }
            text += part
        }
        return text.count <= mostParts * longest ? text : nil
    }

    /// The pending login with this state; `nil` if this browser did not begin it, or it has expired.
    func login(_ state: String, among shown: Shown, at now: Int64) -> OidcPendingLogin? {
        for (suffix, value) in shown.logins where suffix == OidcPendingLogin.suffix(of: state) {
            guard let bytes = open(text: value, as: .login), let login = OidcPendingLogin(json: bytes),
                ConstantTime.equal(Array(login.state.utf8), Array(state.utf8)), now < login.until
            else { continue }
            return login
        }
        return nil
    }

    // MARK: Responses

    /// The field lines that set the session's cookies and delete further parts of the earlier session. `nil` if the
    /// session needs too many parts, or its name is invalid. `text` comes from `text(of:)`.
    func lines(_ text: String, for seconds: Int64, isSecure: Bool, replacing former: [Int]) -> [FieldLine]? {
        let attributes = attributeText(seconds, isSecure)
        let room = OidcCookies.longest - fullName(isSecure).utf8.count - 3 - attributes.utf8.count
        let count = (text.utf8.count + room) / room
        guard count <= OidcCookies.mostParts else { return nil }
        var rest = "\(count)\(text)"[...]
        var lines: [FieldLine] = []
        for index in 0..<count {
            let piece = rest.prefix(room)
            rest = rest.dropFirst(room)
            guard let line = line(partName(index, isSecure), String(piece), attributes) else { return nil }
            lines.append(line)
        }
        return lines + removal(of: former.filter { $0 >= count }, isSecure: isSecure)
    }

    /// A sealed value as text.
    static func text(of sealed: [UInt8]) -> String { Base64.encodeUrl(sealed) }

    /// The field lines that delete these parts of a session.
    func removal(of parts: [Int], isSecure: Bool) -> [FieldLine] {
        Set(parts).sorted().compactMap { line(partName($0, isSecure), "", attributeText(0, isSecure)) }
    }

    /// The field lines for a new pending login: they set its cookie and delete the oldest surplus ones. `nil` if the
    /// login cannot be sealed.
    func lines(_ login: OidcPendingLogin, isSecure: Bool, among shown: Shown) -> [FieldLine]? {
        guard let sealed = seal(login.json, as: .login),
            let line = line(
                loginName(login.suffix, isSecure), OidcCookies.text(of: sealed),
                attributeText(OidcPendingLogin.lifetime, isSecure))
        else { return nil }
        let others = shown.logins.map { suffix, value in
            (suffix, open(text: value, as: .login).flatMap { OidcPendingLogin(json: $0) }?.until ?? 0)
        }
        let surplus = others.sorted { $0.1 < $1.1 }.dropLast(OidcCookies.mostLogins - 1)
        return [line] + surplus.compactMap { removal(ofLogin: $0.0, isSecure: isSecure) }
    }

    /// The field line that deletes the cookie of a pending login.
    func removal(ofLogin suffix: String, isSecure: Bool) -> FieldLine? {
        line(loginName(suffix, isSecure), "", attributeText(0, isSecure))
    }

    private func attributeText(_ seconds: Int64, _ isSecure: Bool) -> String {
        "; Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Lax\(isSecure ? "; Secure" : "")"
    }

    private func fullName(_ isSecure: Bool) -> String { isSecure ? OidcCookies.prefix + name : name }

    private func partName(_ index: Int, _ isSecure: Bool) -> String {
        index == 0 ? fullName(isSecure) : "\(fullName(isSecure)).\(index)"
    }

    private func loginName(_ suffix: String, _ isSecure: Bool) -> String {
        "\(fullName(isSecure)).\(OidcCookies.loginWord)\(suffix)"
    }

    private func line(_ name: String, _ value: String, _ attributes: String) -> FieldLine? {
        // The client may have sent a name with characters that a cookie must not have.
        guard FieldName(name) != nil else { return nil }
        return try? FieldLine(.setCookie, "\(name)=\(value)\(attributes)")
    }
}
