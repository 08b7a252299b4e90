import Foundation
import HttpWareTesting
import GatewayWares

@testable import HttpWare

/// Tokens with claims of a test's choice, signed with a secret.
enum SignedToken {
    static let secret = "a secret of the tests, thirty-two bytes and more"

    /// A ware that accepts them.
    static func ware(_ more: [String: ConfigNode] = [:]) throws -> Jwt {
        let options = more.merging(["key": ConfigNode(.scalar(secret, isQuoted: true)), "algorithms": ["HS256"]]) {
            first, _ in first
        }
        return try TestExchange.make(
            Jwt.self, ConfigNode(.map(options.map { .init(key: $0.key, location: .code, value: $0.value) })))
    }

    /// A token with these claims besides `exp`: `"sub":"ada"`.
    static func make(_ claims: String) -> String {
        let claims = #"{"exp":1800000000\#(claims.isEmpty ? "" : ",")\#(claims)}"#
        let signed = encoded(Array(#"{"alg":"HS256"}"#.utf8)) + "." + encoded(Array(claims.utf8))
        return signed + "." + encoded(signature(Array(signed.utf8)))
    }

    /// The same behind `Bearer`.
    static func bearer(_ claims: String) -> String { "Bearer " + make(claims) }

    /// HMAC with SHA-256. RFC 2104 §2.
    private static func signature(_ text: [UInt8]) -> [UInt8] {
        let key = Array(secret.utf8) + Array(repeating: 0, count: 64 - secret.utf8.count)
        return digest(key.map { $0 ^ 0x5c } + digest(key.map { $0 ^ 0x36 } + text))
    }

    private static func digest(_ bytes: [UInt8]) -> [UInt8] {
        bytes.withUnsafeBytes { Digest256(of: $0).withBytes { Array($0) } }
    }

    private static func encoded(_ bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
