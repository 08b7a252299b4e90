import FoundationEssentials
import HttpWare

/// Parses a value of `Set-Cookie`. RFC 6265bis §5.6.
struct SetCookie {
    var name: String
    var value: String
    /// The expiry by `Max-Age`, or else by `Expires`.
    var expires: Date?
    /// In lower case, without a leading dot; empty if there is no domain.
    var domain = ""
    /// `nil` for the request's default path.
    var path: String?
    var isSecure = false
    var isHttpOnly = false

    /// The most bytes of a name and its value together.
    private static let mostBytes = 4096
    /// The most bytes of an attribute's value.
    private static let mostAttributeBytes = 1024
    /// The longest lifetime of a cookie. RFC 6265bis §5.6.1.
    private static let longestLife: TimeInterval = 400 * 86400

    /// `nil` if the value must be ignored.
    init?(_ line: String, now: Date) {
        guard line.utf8.allSatisfy({ ($0 >= 0x20 && $0 != 0x7f) || $0 == 0x09 }) else { return nil }
        var parts = CookieReader.pairs(line)[...]
        guard let pair = parts.popFirst() else { return nil }
        name = pair.value == nil ? "" : pair.name
        value = pair.value ?? pair.name
        guard !name.isEmpty || !value.isEmpty, name.utf8.count + value.utf8.count <= SetCookie.mostBytes else {
            return nil
        }
        var ends: (date: Date?, age: Date?) = (nil, nil)
        for part in parts {
            let text = part.value ?? ""
            guard text.utf8.count <= SetCookie.mostAttributeBytes else { continue }
            switch part.name.lowercased() {
            case "expires":
                if let date = CookieDate.read(text) {
                    ends.date = min(Date(timeIntervalSince1970: TimeInterval(date)), now + SetCookie.longestLife)
                }
            case "max-age":
                if let age = SetCookie.age(text) {
                    ends.age = age <= 0 ? .distantPast : now + min(TimeInterval(age), SetCookie.longestLife)
                }
            case "domain": domain = (text.hasPrefix(".") ? String(text.dropFirst()) : text).lowercased()
            case "path": path = text.hasPrefix("/") ? text : nil
            case "secure": isSecure = true
            case "httponly": isHttpOnly = true
            default: break
            }
        }
        expires = ends.age ?? ends.date
    }

    /// The number of seconds; `nil` if the text is not a number. A number that exceeds 64 bits becomes the largest or
    /// smallest one.
    private static func age(_ text: String) -> Int64? {
        let digits = text.utf8.drop { $0 == 0x2d }
        guard !digits.isEmpty, text.utf8.count - digits.count <= 1,
            digits.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return Int64(text) ?? (text.hasPrefix("-") ? .min : .max)
    }

    /// The cookie as it is stored for this address; `nil` if the address is not allowed to set it. RFC 6265bis §5.7.
    func cookie(from place: CookiePlace, now: Date) -> Cookie? {
        var domain = domain
        guard domain.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        if !domain.isEmpty, CookiePlace.isPublicSuffix(domain) {
            guard domain == place.host else { return nil }
            domain = ""
        }
        guard domain.isEmpty || CookiePlace.matches(place.host, domain: domain) else { return nil }
        guard place.isSecure || !isSecure else { return nil }
        // Names with special prefixes are compared without case, because servers might do the same.
        let promise = name.isEmpty ? value.lowercased() : name.lowercased()
        if promise.hasPrefix("__secure-"), !isSecure || name.isEmpty { return nil }
        if promise.hasPrefix("__host-"), !isSecure || !domain.isEmpty || path != "/" || name.isEmpty { return nil }
        return Cookie(
            name: name, value: value, domain: domain.isEmpty ? place.host : domain, isHostOnly: domain.isEmpty,
            path: path ?? place.defaultPath, isSecure: isSecure, isHttpOnly: isHttpOnly, expires: expires, created: now)
    }
}
