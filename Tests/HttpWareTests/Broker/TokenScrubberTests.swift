import Foundation
import Testing

@testable import HttpWare

@Suite struct TokenScrubberTests {
    private let placeholder = TokenPlaceholder(bytes: Array("hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV".utf8))

    private func scrub(_ text: String, token: String, cut: Int = .max) throws -> (text: String, finds: Int) {
        var scrubber = TokenScrubber(try #require(TokenSearch(Secret(token))), placeholder: placeholder)
        var output: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(cut))
            rest = rest.dropFirst(piece.count)
            piece.withUnsafeBytes { scrubber.feed($0, into: &output) }
        }
        scrubber.finish(into: &output)
        return (String(decoding: output, as: UTF8.self), scrubber.finds)
    }

    /// The same result, however the stream is cut.
    private func scrubEveryWay(_ text: String, token: String) throws -> String {
        let whole = try scrub(text, token: token)
        for cut in 1...max(1, min(40, text.utf8.count)) {
            let other = try scrub(text, token: token, cut: cut)
            #expect(other.text == whole.text, "cut every \(cut) bytes")
            #expect(other.finds == whole.finds, "cut every \(cut) bytes")
        }
        return whole.text
    }

    @Test(arguments: [
        "secret-token", "aaaa", "abcabcabd", "a+b/c=", "x\"y\\z", String(repeating: "ab", count: 300) + "c",
    ])
    func `a token is found as it is, percent-encoded and in JSON`(token: String) throws {
        let everyByte = token.utf8.map { String(format: "%%%02x", $0) }.joined()
        let unicode = token.utf8.map { String(format: "\\u%04X", $0) }.joined()
        let json = token.replacingOccurrences(of: "\\", with: "\\\\").replacingOccurrences(of: "\"", with: "\\\"")
            .replacingOccurrences(of: "/", with: "\\/")
        let usual = token.utf8.map { byte in
            ByteClass.isUnreserved(byte) ? String(UnicodeScalar(byte)) : String(format: "%%%02X", byte)
        }.joined()
        for form in [token, everyByte, unicode, json, usual] {
            #expect(try scrubEveryWay("before \(form)", token: token) == "before \(placeholder.text)", "\(form)")
            #expect(try scrubEveryWay("<\(form)>", token: token) == "<\(placeholder.text)>", "\(form)")
            #expect(
                try scrubEveryWay("{\"a\":\"\(form)\",\"b\":\"\(form)\"}", token: token)
                    == "{\"a\":\"\(placeholder.text)\",\"b\":\"\(placeholder.text)\"}", "\(form)")
        }
    }

    @Test func `other text stays as it is`() throws {
        for text in [
            "", "s", "secre", "100%", "100%4", "%zz%41", "\\", "\\u00", "\\u004", "\\q\\n\\u12G4", "%%%%",
            "secret-toke",
            "secret-tokesecret-toke", "QUJD", "QUI=", "QQ==", "a=b==c",
        ] {
            #expect(try scrubEveryWay(text, token: "secret-token") == text)
        }
    }

    @Test(arguments: ["secret-token", "tok1", "tok12", "tok123", "?>?>?>~~~\u{1}", "a+b/c=d", "Zm9vYmFyQmF6"])
    func `in base64 the run decodes to the text with the placeholder`(token: String) throws {
        for before in ["", "u", "us", "use", "user:"] {
            for after in ["", "1", "12", "123", "1234", ":x:\(token)", token, "/\(token)/\(token)"] {
                let plain = before + token + after
                let expected = plain.replacingOccurrences(of: token, with: placeholder.text)
                let encoded = Data(plain.utf8).base64EncodedString()
                for frame in [("", ""), ("Basic ", "\r\n"), ("{\"a\":\"", "\"}")] {
                    let scrubbed = try scrubEveryWay(frame.0 + encoded + frame.1, token: token)
                    let run = String(scrubbed.dropFirst(frame.0.count).dropLast(frame.1.count))
                    let decoded = Data(base64Encoded: run).map { String(decoding: $0, as: UTF8.self) }
                    #expect(decoded == expected, "\(before)|\(token)|\(after): \(encoded) -> \(scrubbed)")
                }
                let url = encoded.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
                    .replacingOccurrences(of: "=", with: "")
                let scrubbed = try scrubEveryWay("\(url).", token: token)
                let back = scrubbed.dropLast().replacingOccurrences(of: "-", with: "+")
                    .replacingOccurrences(of: "_", with: "/").replacingOccurrences(of: "=", with: "")
                let padded = back + String(repeating: "=", count: (4 - back.count % 4) % 4)
                #expect(Data(base64Encoded: padded).map { String(decoding: $0, as: UTF8.self) } == expected)
            }
        }
    }

    @Test func `bytes that may be the beginning of a token are held back, and nothing else`() throws {
        var scrubber = TokenScrubber(try #require(TokenSearch(Secret("secret-token"))), placeholder: placeholder)
        var output: [UInt8] = []
        Array("data: secret-t".utf8).withUnsafeBytes { scrubber.feed($0, into: &output) }
        #expect(String(decoding: output, as: UTF8.self) == "data: ")
        scrubber.flush(into: &output)
        #expect(String(decoding: output, as: UTF8.self) == "data: ")
        Array("ea\n".utf8).withUnsafeBytes { scrubber.feed($0, into: &output) }
        #expect(String(decoding: output, as: UTF8.self) == "data: secret-tea\n")
        Array("login".utf8).withUnsafeBytes { scrubber.feed($0, into: &output) }
        scrubber.flush(into: &output)
        #expect(String(decoding: output, as: UTF8.self) == "data: secret-tea\nlogin")
    }

    @Test func `random streams with tokens in them`() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<400 {
            let alphabet = Array("ab%\\4u61=")
            let token = String(
                (0..<Int.random(in: 4...8, using: &random)).map { _ in "ab".randomElement(using: &random)! })
            var text = ""
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                text += Bool.random(using: &random) ? token : String(alphabet.randomElement(using: &random)!)
            }
            let scrubbed = try scrubEveryWay(text, token: token)
            #expect(!scrubbed.contains(token), "\(text) with \(token)")
            if !text.contains(token), !text.contains("%"), !text.contains("\\"), text.count < 6 {
                #expect(scrubbed == text)
            }
        }
    }

    @Test func `many finds in one piece take linear time`() throws {
        let text = String(repeating: "token-token ", count: 100_000)
        let began = ContinuousClock.now
        let result = try scrub(text, token: "token-token")
        #expect(result.finds == 100_000)
        #expect(ContinuousClock.now - began < .seconds(20))
    }
}
