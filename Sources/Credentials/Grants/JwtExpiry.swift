import FoundationEssentials
import HttpWare

/// When a JWT says that it expires: the `exp` of a token whose endpoint did not say. RFC 7519 §4.1.4.
///
/// The signature is not looked at: whose token this is the token endpoint said.
enum JwtExpiry {
    static func read(_ token: Secret) -> WallTime? {
        let parts = token.revealed.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var base64 = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
        while base64.utf8.count % 4 != 0 { base64 += "=" }
        guard let data = Data(base64Encoded: base64),
            let seconds = try? JSONDecoder().decode(Claims.self, from: data).exp,
            seconds >= 0, seconds < 1e15
        else { return nil }
        return WallTime(seconds: Int64(seconds))
    }

    private struct Claims: Decodable {
        let exp: Double?
    }
}
