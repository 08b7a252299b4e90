import Credentials
import HttpWare

/// The data of one certificate authority that gateways share: the account, the certificates and their renewal states. On a board,
/// gateways announce challenges, so that each of them can answer, and new certificates.
///
/// Everything except the mark of the last change is sealed for its name, so that no value can be put in the place of another.
struct AcmeSharedStore: AcmeStorage {
    private let server: any AcmeServer
    private let store: String
    private let folder: String
    private let keys: [SealingKey]

    /// The interval at which the board is read.
    static let pause = Duration.seconds(1)
    /// How long a gateway that died can keep the others from ordering.
    private static let lease = Duration.seconds(60)
    /// The longest time for which a challenge is answered.
    private static let longestChallenge = Duration.seconds(600)
    private static let mostMembers = 4096
    private static let board = "board"
    private static let mark = "mark"

    init(_ sharing: AcmeSharing, _ settings: AcmeSettings) {
        server = sharing.server
        store = sharing.store
        folder = AcmeFolder.name(of: settings.directory)
        keys = sharing.keys.map { SealingKey(Array($0.revealed.utf8), for: "acme") }
    }

    func place(of name: String) -> String { "\(store): \(key(name))" }

    private func key(_ name: String) -> String { "\(folder)/\(name)" }

    private func ask<Value>(_ body: () async throws -> Value) async throws(AcmeFailure) -> Value {
        do { return try await body() } catch {
            throw AcmeFailure(.unkept, "the store \(store) cannot be reached: \(error)")
        }
    }

    // MARK: Sealing

    private func sealed(_ bytes: [UInt8], for name: String) throws(AcmeFailure) -> [UInt8] {
        guard let sealed = keys.first?.seal(bytes, context: Array(key(name).utf8)) else {
            throw AcmeFailure(.local, "OpenSSL cannot seal")
        }
        return sealed
    }

    /// The unsealed bytes, and whether another secret than the first one had sealed them.
    private func opened(_ sealed: [UInt8], for name: String) -> (bytes: [UInt8], isOld: Bool)? {
        let context = Array(key(name).utf8)
        for (index, key) in keys.enumerated() {
            if let bytes = key.open(sealed, context: context) { return (bytes, index > 0) }
        }
        return nil
    }

    func read(_ name: String) async throws(AcmeFailure) -> [UInt8]? {
        guard let sealed = try await ask({ try await server.value(of: key(name)) }) else { return nil }
        guard let (bytes, isOld) = opened(sealed, for: name) else {
            throw AcmeFailure(
                .unkept,
                "\(place(of: name)): was not sealed with a secret of acme.key; add the former secret to the list, or remove this key from Redis"
            )
        }
        // Sealed again, so that the old secret can be removed from the list later.
        if isOld { try? await write(name, bytes) }
        return bytes
    }

    func write(_ name: String, _ bytes: [UInt8]) async throws(AcmeFailure) {
        let value = try sealed(bytes, for: name)
        try await ask { try await server.keep(value, under: key(name)) }
    }

    // MARK: The lock

    private struct Lock: AcmeLock {
        let lease: any RefreshLease

        func release() async { await lease.giveBack() }
    }

    func tryLock(_ name: String) async throws(AcmeFailure) -> (any AcmeLock)? {
        do throws(CredentialFailure) {
            let lock = server.lock(key("\(name).lock"), for: AcmeSharedStore.lease)
            return try await lock.tryTake().map { Lock(lease: $0) }
        } catch {
            throw AcmeFailure(.unkept, error.reason)
        }
    }

    // MARK: The board

    /// The content of the board.
    struct Board: Sendable {
        /// Changes with each new certificate; `nil` if there never was one, or the store lost it.
        var mark: [UInt8]?
        var challenges: [PendingChallenge] = []
    }

    /// Announces a challenge to the other gateways.
    func publish(_ challenge: PendingChallenge, at now: WallTime) async throws(AcmeFailure) {
        let name = AcmeSharedStore.member(challenge)
        let end = now + AcmeSharedStore.longestChallenge
        let json = Json.object([
            ("kind", .text(challenge.kind.rawValue)), ("name", .text(challenge.name)),
            ("token", .text(challenge.token)), ("answer", .text(challenge.keyAuthorization)),
            ("end", .number(Int(end.seconds))),
        ])
        let value = try sealed(json.bytes, for: "\(AcmeSharedStore.board)/\(name)")
        try await ask { try await server.set(name, to: value, in: key(AcmeSharedStore.board)) }
    }

    func withdraw(_ challenge: PendingChallenge) async {
        try? await server.remove(AcmeSharedStore.member(challenge), from: key(AcmeSharedStore.board))
    }

    /// Announces a new certificate to the other gateways.
    func announce() async throws(AcmeFailure) {
        let mark = withUnsafeBytes(of: UInt64.random(in: 0 ... .max)) { Array($0) }
        try await ask { try await server.set(AcmeSharedStore.mark, to: mark, in: key(AcmeSharedStore.board)) }
    }

    /// Reads the board. Expired challenges, whose gateway died, are removed.
    func look(at now: WallTime) async throws(AcmeFailure) -> Board {
        var board = Board()
        let members = try await ask { try await server.members(of: key(AcmeSharedStore.board)) }
        for (name, value) in members.prefix(AcmeSharedStore.mostMembers) {
            if name == AcmeSharedStore.mark {
                board.mark = value
            } else if let (challenge, end) = challenge(value, name) {
                if end > now {
                    board.challenges.append(challenge)
                } else {
                    await withdraw(challenge)
                }
            }
        }
        return board
    }

    private static func member(_ challenge: PendingChallenge) -> String {
        Array("\(challenge.kind.rawValue) \(challenge.name) \(challenge.token)".utf8).withUnsafeBytes {
            Digest256(of: $0).hex
        }
    }

    private func challenge(_ value: [UInt8], _ name: String) -> (PendingChallenge, end: WallTime)? {
        guard let (bytes, _) = opened(value, for: "\(AcmeSharedStore.board)/\(name)"),
            let json = try? JsonValue(bytes), let kind = json["kind"]?.string.flatMap(ChallengeKind.init),
            let domain = json["name"]?.string, let token = json["token"]?.string, let answer = json["answer"]?.string,
            let end = json["end"]?.double, (0...1e11).contains(end)
        else { return nil }
        let challenge = PendingChallenge(kind: kind, name: domain, token: token, keyAuthorization: answer)
        return (challenge, WallTime(seconds: Int64(end)))
    }
}
