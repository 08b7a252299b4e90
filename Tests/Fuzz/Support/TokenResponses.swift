@testable import Credentials
import HttpWare

extension Fuzzing {
    private static let types = [
        "application/json", "application/json; charset=utf-8", "text/html", "application/x+json",
    ]
    private static let statuses: [HttpStatus] = [.ok, .badRequest, .unauthorized, .internalServerError]

    /// A token endpoint's answer is a token that can be sent, or is refused without a word of its own; so is a file of tokens.
    public static func tokenResponse(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        var response = HttpResponse(statuses[choice & 3], content: .bytes(wire))
        do {
            try response.fields.set(.contentType, to: types[choice >> 2 & 3])
        } catch {
            fatalError("not a field value: \(error)")
        }
        do throws(CredentialFailure) {
            let read = try TokenResponse(response)
            require(choice & 3 == 0 && choice >> 2 & 3 != 2, "taken: \(choice)")
            for token in [read.accessToken, read.refreshToken].compactMap(\.self) {
                require(
                    (try? FieldLine(.authorization, "Bearer \(token.revealed)")) != nil, "a token that cannot be sent")
            }
            if let lifetime = read.lifetime { require(lifetime >= 1, "a lifetime of \(lifetime)") }
            _ = JwtExpiry.read(read.accessToken)
        } catch {
            require(error.reason.utf8.count < 100, "too long: \(error.reason)")
            require(error.reason.utf8.allSatisfy { (0x20...0x7e).contains($0) || $0 > 0x7f }, "not one line")
        }
        if let stored = StoredTokens(json: wire), let again = StoredTokens(json: stored.json) {
            require(
                again.accessToken == stored.accessToken && again.refreshToken == stored.refreshToken
                    && again.origin == stored.origin, "what was kept reads as something else")
        }
        _ = JwtExpiry.read(Secret(String(decoding: wire, as: UTF8.self)))
    }
}
