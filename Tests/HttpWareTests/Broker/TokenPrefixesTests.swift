import Foundation
import Testing

@testable import HttpWare

@Suite struct TokenPrefixesTests {
    private func place(_ text: String, _ token: String = "secret-token", from start: Int = 0) throws -> Int {
        let prefixes = try #require(TokenSearch(Secret(token))).prefixes
        return Array(text.utf8).withUnsafeBufferPointer { prefixes.place(in: $0, from: start) }
    }

    @Test func `a token may begin where its first symbols are, as they are and in base64`() throws {
        #expect(try place("no such text, seconds!") == 22)
        #expect(try place("a secret!") == 2)
        #expect(try place("secret secret", from: 1) == 7)
        // Of a shorter beginning more may follow.
        #expect(try place("a secre") == 2)
        #expect(try place("a secre ") == 8)
        for before in ["", "a", "ab"] {
            let digits = Array(Data((before + "secret-token").utf8).base64EncodedString().utf8)
            let first = (8 * before.utf8.count + 5) / 6
            #expect(
                try place("= \(String(decoding: digits, as: UTF8.self))") == 2 + first, "behind \(before.utf8.count)")
        }
    }

    @Test func `both alphabets of base64 are known`() throws {
        #expect(try place("= fn5-fn5-", "~~~~~~") == 2)
        #expect(try place("= fn5+fn5+", "~~~~~~") == 2)
        #expect(try place("= Pz8/Pz8/", "??????") == 2)
        #expect(try place("= Pz8_Pz8_", "??????") == 2)
    }

    @Test func `escapes with which a token may begin, and line ends behind first symbols, stop the look`() throws {
        for escape in ["%73ecret", "%7c", "\\u0073", "%5c", "%", "a%", "\\", "%4"] {
            let text = "a \(escape)"
            #expect(
                try place(text)
                    == text.utf8.firstIndex { $0 == 0x25 || $0 == 0x5c }.map {
                        text.utf8.distance(from: text.startIndex, to: $0)
                    }, "\(escape)")
        }
        #expect(try place("a\r\nb!") == 5)
        #expect(try place("a se%63ret") == 2)
        #expect(try place("= c2\nVj") == 2)
        #expect(try place("a \\tsecret", "\\tsecret") == 2)
        #expect(try place("a %20secret", "%20secret") == 2)
    }

    @Test func `other escapes are passed over`() throws {
        for escape in ["%20", "%7B", "%-", "%2-", "\\\"", "\\\\", "\\n", "\\t"] {
            #expect(try place("a \(escape)!! secret") == 5 + escape.utf8.count, "\(escape)")
        }
    }

    @Test func `a text that is at hand may hold a token only if its first symbols are there`() throws {
        let prefixes = try #require(TokenSearch(Secret("secret-token"))).prefixes
        for (text, expected) in [
            ("", false), ("a secre", false), ("a secret", true), ("100%", true), ("secre secre", false),
        ] {
            #expect(Array(text.utf8).withUnsafeBufferPointer { prefixes.mayHold(in: $0) } == expected, "\(text)")
        }
    }
}
