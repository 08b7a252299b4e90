@testable import Authentication
@testable import Credentials
import HttpWare

extension Fuzzing {
    /// Tokens, key sets, JSON, and the files of keys and passwords: each is read or refused, and what is read says the same
    /// when it is written and read again.
    public static func credentials(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, bytes) = input(start, count) else { return }
        switch choice % 6 {
        case 0: token(bytes)
        case 1: keySet(bytes)
        case 2: json(bytes)
        case 3: keysFile(bytes)
        case 4: passwords(bytes)
        default: basic(bytes)
        }
    }

    private static let now = WallTime(seconds: 1_767_225_600)
    private static let secret = VerifyingKey(secret: Array(repeating: 1, count: 32))

    /// No input is signed with the secret: none may be accepted.
    private static func token(_ bytes: [UInt8]) {
        guard let secret else { fatalError("no secret") }
        var verifier = JwtVerifier()
        verifier.algorithms = VerifyingKey.Algorithm.allCases
        let isAccepted = (try? verifier.verify(bytes, keys: JsonWebKeySet([JsonWebKey(secret)]), at: now)) != nil
        require(!isAccepted, "a token is accepted that nobody signed")
        guard let parts = try? CompactJwt(bytes, algorithms: verifier.algorithms) else { return }
        require(parts.signed.upperBound < bytes.count && parts.claims.upperBound == parts.signed.upperBound, "ranges")
    }

    private static func keySet(_ bytes: [UInt8]) {
        guard let set = try? JsonWebKeySet(json: bytes, hasSecrets: true) else { return }
        require(!set.keys.isEmpty && set.keys.count <= JsonWebKeySet.most, "\(set.keys.count) keys")
        for key in set.keys {
            require(key.algorithm.map(key.key.isFor) ?? true, "a key of another kind")
        }
        let isRead = (try? JsonWebKeySet(json: bytes, hasSecrets: false)) != nil
        require(isRead == set.keys.contains { $0.key.kind != .secret }, "secrets")
    }

    private static func json(_ bytes: [UInt8]) {
        guard let value = try? JsonValue(bytes) else { return }
        let text = value.json
        guard let again = try? JsonValue(text.utf8) else { fatalError("\(text) is not read again") }
        require(again == value, text)
    }

    private static func keysFile(_ bytes: [UInt8]) {
        var mistakes: [FileMistake] = []
        let list = KeyList(bytes, mistakes: &mistakes)
        check(mistakes)
        require(!mistakes.isEmpty || list.count > 0, "neither keys nor mistakes")
        require(bytes.withUnsafeBytes { list.owner(of: $0) } == nil, "a file is a key of its own")
    }

    /// Nothing is hashed here: that takes too long.
    private static func passwords(_ bytes: [UInt8]) {
        var mistakes: [FileMistake] = []
        let file = PasswordFile(bytes, mistakes: &mistakes)
        check(mistakes)
        require(!mistakes.isEmpty || file.count > 0, "neither users nor mistakes")
    }

    private static func basic(_ bytes: [UInt8]) {
        guard let credentials = BasicCredentials(bytes) else { return }
        let pair = Array(credentials.user.utf8) + [0x3a] + credentials.password
        require(BasicCredentials(Base64.encode(pair).utf8)?.password == credentials.password, "another password")
        require(!credentials.password.contains { $0 < 0x20 }, "a control character")
    }

    private static func check(_ mistakes: [FileMistake]) {
        for mistake in mistakes {
            require(mistake.line > 0 && mistake.column > 0 && !mistake.message.isEmpty, "\(mistake)")
            require(mistake.message.utf8.count < 200, mistake.message)
        }
    }
}
