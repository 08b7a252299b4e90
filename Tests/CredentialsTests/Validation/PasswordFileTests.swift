import HttpWare
import Testing

@testable import Authentication

@Suite struct PasswordFileTests {
    // htpasswd -nbBC 4
    private static let ada = "ada:$2y$04$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcDMu"
    private static let grüße = "grüße:$2y$04$VNxArq6.yOwJ/snETeFcduuoJQc8.X08YG3o6pGsEAlFCvnALDW22"

    private func file(_ lines: String...) throws -> PasswordFile {
        var mistakes: [FileMistake] = []
        let file = PasswordFile(Array(lines.joined(separator: "\n").utf8), mistakes: &mistakes)
        #expect(mistakes == [])
        return file
    }

    @Test func `hashes that htpasswd -B made are accepted, and nothing else`() throws {
        let file = try file("# staff", Self.ada, Self.grüße)
        #expect(file.count == 2)
        #expect(file.accepts("ada", Array("correct horse".utf8)))
        #expect(file.accepts("grüße", Array("pässwörd".utf8)))
        #expect(!file.accepts("ada", Array("correct horse ".utf8)))
        #expect(!file.accepts("ada", []))
        #expect(!file.accepts("Ada", Array("correct horse".utf8)))
        #expect(!file.accepts("eve", Array("correct horse".utf8)))
        #expect(!file.accepts("", []))
    }

    @Test func `a password with NUL is invalid`() throws {
        #expect(!(try file(Self.ada)).accepts("ada", Array("correct horse\0x".utf8)))
    }

    @Test func `a file without users accepts no user`() { #expect(!PasswordFile().accepts("ada", [])) }

    @Test func `a user who is not there is checked against the hash that takes longest`() throws {
        // htpasswd -nbBC 5; the work doubles with each step of the cost.
        let dear = "bob:$2y$05$bYYtFc8fMiisVx2Q1DPv2eaxN5d.I0BmlOqtLgufHI6bIjVHuZRcS"
        let file = try file(Self.ada, dear)
        let clock = ContinuousClock()
        // In turns, and again where other programs took the time: a user who is not looked for would take a hundredth each time.
        var ratio = 0.0
        for _ in 0..<20 where !(0.7...1.4).contains(ratio) {
            let times = (0..<10).map { _ in
                (clock.measure { _ = file.accepts("bob", [0x78]) }, clock.measure { _ = file.accepts("eve", [0x78]) })
            }
            ratio = try #require(times.map(\.1).min()) / #require(times.map(\.0).min())
        }
        #expect((0.7...1.4).contains(ratio), "\(ratio)")
    }

    @Test(arguments: [
        ("md5:$apr1$lrJSPmxn$IplZfX4BlAIW6Od0cFWMF/", 5, "not bcrypt's"),
        ("sha:{SHA}EfatjsUqKYSrqv18O1FlA3hcIHI=", 5, "not bcrypt's"),
        ("crypt:OasL2ZIHfSt5k", 7, "not bcrypt's"),
        ("a:$5$Gvpz7sXYWP3Hjr4x$8ku6a5B6q8qvkDVLhmXw04bSsTJKej0wtS.7u/mnzYA", 3, "not bcrypt's"),
        ("a:plain", 3, "not bcrypt's"), ("a:", 3, "not bcrypt's"),
        ("a:$2x$04$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcDMu", 3, "not bcrypt's"),
        ("a:$2y$31$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcDMu", 3, "4 to 15"),
        ("a:$2y$03$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcDMu", 3, "4 to 15"),
        ("a:$2y$4$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcDMu", 3, "4 to 15"),
        ("a:$2y$04$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcDM", 3, "53 characters"),
        ("a:$2y$04$zoHfVw6ZGvkBV3tRaAi6lebsGZT2wkSQ6j9RLg/mRORKZioMrcD+", 3, "53 characters"),
        ("ada", 1, "user:hash"), ("", 1, "contains no user"),
    ])
    func `any other hash is a mistake with its place`(line: String, column: Int, text: String) throws {
        var mistakes: [FileMistake] = []
        _ = PasswordFile(Array(line.utf8), mistakes: &mistakes)
        let mistake = try #require(mistakes.first)
        #expect((mistake.line, mistake.column) == (1, column))
        #expect(mistake.message.contains(text), "\(mistake.message)")
    }

    @Test func `a user who stands twice is a mistake`() {
        var mistakes: [FileMistake] = []
        _ = PasswordFile(Array("\(Self.ada)\n\(Self.ada)".utf8), mistakes: &mistakes)
        #expect(mistakes.map(\.line) == [2])
    }

    @Test(arguments: [
        ("QWxhZGRpbjpvcGVuIHNlc2FtZQ==", "Aladdin", "open sesame"), ("dGVzdDoxMjPCow==", "test", "123£"),
        ("YTo=", "a", ""), ("OmI=", "", "b"),
        ("YTpiOmM=", "a", "b:c"),
    ])
    func `RFC 7617 §2, credentials are a user and a password`(text: String, user: String, password: String) throws {
        let read = try #require(BasicCredentials(text.utf8))
        #expect(read.user == user)
        #expect(read.password == Array(password.utf8))
    }

    @Test(arguments: ["", "YQ==", "YTpiAA==", "YQo6Yg==", "YTpiCg==", "//86Yg==", "a:b", "YTp/"])
    func `RFC 7617 §2, credentials that are malformed, or hold control characters, are refused`(text: String) {
        #expect(BasicCredentials(text.utf8) == nil)
    }
}
