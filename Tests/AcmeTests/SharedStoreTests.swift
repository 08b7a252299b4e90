import HttpWare
import HttpWareRedis
import HttpWareTesting
import Synchronization
import Testing

@testable import Acme
@testable import Credentials

/// Certificates in a store that gateways share.
@Suite(.timeLimit(.minutes(2))) struct SharedStoreTests {
    /// A store in memory, which fails when it is told to. Guarded by mutexes.
    private final class MemoryServer: AcmeServer {
        struct Away: Error, CustomStringConvertible { let description = "it is away" }

        let values = Mutex<[String: [UInt8]]>([:])
        let maps = Mutex<[String: [String: [UInt8]]]>([:])
        let locks = Mutex<Set<String>>([])
        let isAway = Mutex(false)
        let refusesValues = Mutex(false)
        /// Called when a member of a map was set.
        let whenSet = Mutex<(@Sendable () async -> Void)?>(nil)

        private func ask() throws(Away) { if isAway.withLock({ $0 }) { throw Away() } }

        func value(of name: String) throws -> [UInt8]? {
            try ask()
            return values.withLock { $0[name] }
        }

        func keep(_ value: [UInt8], under name: String) throws {
            try ask()
            if refusesValues.withLock({ $0 }) { throw Away() }
            values.withLock { $0[name] = value }
        }

        func members(of name: String) throws -> [(name: String, value: [UInt8])] {
            try ask()
            return maps.withLock { $0[name] ?? [:] }.map { ($0.key, $0.value) }
        }

        func set(_ member: String, to value: [UInt8], in name: String) async throws {
            try ask()
            maps.withLock { $0[name, default: [:]][member] = value }
            await whenSet.withLock { $0 }?()
        }

        func remove(_ member: String, from name: String) throws {
            try ask()
            maps.withLock { _ = $0[name]?.removeValue(forKey: member) }
        }

        func lock(_ name: String, for lease: Duration) -> any RefreshLock { Lock(server: self, name: name) }

        private struct Lock: RefreshLock, RefreshLease {
            let server: MemoryServer
            let name: String
            var pause: Duration { .milliseconds(1) }

            func tryTake() async throws(CredentialFailure) -> (any RefreshLease)? {
                if server.isAway.withLock({ $0 }) { throw CredentialFailure(cannotReach: "it is away") }
                return server.locks.withLock { $0.insert(name).inserted } ? self : nil
            }
            func confirm() async -> Bool { true }
            func giveBack() async { server.locks.withLock { _ = $0.remove(name) } }
        }
    }

    /// Two gateways with a store, and an authority that asks one of them for the answers to challenges.
    private final class Setting: Sendable {
        let server = MemoryServer()
        let challenges: [PendingChallenges]
        let authority: TestAuthority
        let loop: TestLoop
        let kind: ChallengeKind

        init(kind: ChallengeKind = .http01, asked: Int = 0) throws {
            challenges = [PendingChallenges(), PendingChallenges()]
            authority = TestAuthority(challenges[asked], kind: kind)
            loop = try TestLoop()
            self.kind = kind
        }

        func keeper(
            _ index: Int = 0, keys: [String] = ["a secret of 16 bytes or more"], server: (any AcmeServer)? = nil,
            notice: Duration = .milliseconds(1)
        ) throws -> CertificateKeeper {
            var settings = AcmeSettings(domains: ["a.test"], store: "")
            settings.directory = try #require(TestAuthority.place)
            settings.challenge = kind
            settings.sharing = AcmeSharing(
                server ?? self.server, store: "shared", keys: keys.map { Secret($0) })
            var limits = AcmeLimits()
            limits.pause = .milliseconds(1) ... .milliseconds(2)
            limits.notice = notice
            return try CertificateKeeper(
                settings, challenges: challenges[index], http: authority, limits: limits, changed: {})
        }

        func step(_ keeper: CertificateKeeper) async -> Int64 {
            await loop.run { await keeper.step(on: self.loop.loop).components.seconds }
        }

        func look(_ keeper: CertificateKeeper, after: Duration = .zero) async {
            await loop.run { await keeper.look(at: self.loop.loop.wallNow() + after) }
        }

        func report(_ keeper: CertificateKeeper) throws -> CertificateKeeper.Report {
            try #require(keeper.report(at: SystemLoopClock().wallNow()).first)
        }
    }

    private static func facts(_ keeper: CertificateKeeper) throws -> CertificateFacts {
        try CertificateFacts(try #require(keeper.identities.first).chain)
    }

    @Test(arguments: ChallengeKind.allCases)
    func `one gateway orders, the other one answers the challenge, and both show the certificate`(
        kind: ChallengeKind
    ) async throws {
        let setting = try Setting(kind: kind, asked: 1)
        let (one, other) = (try setting.keeper(0), try setting.keeper(1))
        setting.server.whenSet.withLock { $0 = { await setting.look(other) } }
        _ = await setting.step(one)
        #expect(try Self.facts(one).issuer == "CN=test-ca")
        // The other gateway has looked at the announcement.
        #expect(try Self.facts(other) == Self.facts(one))
        _ = await setting.step(other)
        #expect(setting.authority.count("POST /orders") == 1 && setting.authority.count("POST /account") == 1)
        await setting.look(other)
        #expect(!setting.challenges[1].hasHttp && setting.challenges[1].tls.isEmpty)
    }

    @Test func `a gateway that starts has the certificate at its first look`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        let next = try setting.keeper()
        #expect(try Self.facts(next).issuer == "CN=httpware: no certificate yet")
        await setting.look(next)
        #expect(try Self.facts(next) == Self.facts(keeper))
    }

    @Test func `all that is kept is sealed for its place`() async throws {
        let setting = try Setting()
        let boards = Mutex<[[UInt8]]>([])
        setting.server.whenSet.withLock {
            $0 = { boards.withLock { $0 += setting.server.maps.withLock { $0.values.flatMap(\.values) } } }
        }
        _ = try await setting.step(setting.keeper())
        let values = setting.server.values.withLock { $0 }
        #expect(values.count == 3)
        for bytes in values.values + boards.withLock({ $0 }) {
            let text = String(decoding: bytes, as: UTF8.self)
            for word in ["PRIVATE", "CERTIFICATE", "https", "failures", TestAuthority.token] {
                #expect(!text.contains(word))
            }
        }
        // The account in the place of the certificate, and the other way round.
        let names = values.keys.sorted()
        setting.server.values.withLock { $0[names[0]] = values[names[2]] }
        setting.server.values.withLock { $0[names[2]] = values[names[0]] }
        let next = try setting.keeper()
        let calls = setting.authority.calls.count
        await setting.look(next)
        _ = await setting.step(next)
        #expect(try Self.facts(next).issuer == "CN=httpware: no certificate yet")
        #expect(setting.authority.calls.count == calls)
    }

    @Test func `secrets rotate, and what another secret sealed is neither used nor replaced`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        let calls = setting.authority.calls.count
        let before = setting.server.values.withLock { $0 }
        let stranger = try setting.keeper(keys: ["another secret of many bytes"])
        await setting.look(stranger)
        let rest = await setting.step(stranger)
        #expect(rest == 5)
        #expect(setting.authority.calls.count == calls)
        #expect(setting.server.values.withLock { $0 } == before)
        let both = try setting.keeper(keys: ["another secret of many bytes", "a secret of 16 bytes or more"])
        await setting.look(both)
        #expect(try Self.facts(both) == Self.facts(keeper))
        // Sealed again, by the first secret.
        let after = try setting.keeper(keys: ["another secret of many bytes"])
        await setting.look(after)
        #expect(try Self.facts(after) == Self.facts(keeper))
    }

    @Test func `while the store is away nothing is ordered, and no failure counts`() async throws {
        let setting = try Setting()
        setting.server.isAway.withLock { $0 = true }
        let keeper = try setting.keeper()
        for _ in 0..<3 {
            await setting.look(keeper)
            let rest = await setting.step(keeper)
            #expect(rest == 5)
        }
        #expect(setting.authority.calls.isEmpty)
        #expect(try setting.report(keeper).failures == 0)
        setting.server.isAway.withLock { $0 = false }
        _ = await setting.step(keeper)
        #expect(try Self.facts(keeper).issuer == "CN=test-ca")
    }

    @Test func `a certificate that cannot be written is used, and written later`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        // The account is there already.
        _ = await setting.step(keeper)
        setting.server.refusesValues.withLock { $0 = true }
        setting.authority.behave { $0.days = 30 }
        #expect(keeper.orderNow("a.test", on: setting.loop.loop))
        keeper.stop()
        let isNew = { (try? Self.facts(keeper)).map { $0.end - $0.start == .seconds(30 * 86_400) } ?? false }
        for _ in 0..<500 where !isNew() { _ = await setting.step(keeper) }
        #expect(isNew())
        let orders = setting.authority.count("POST /orders")
        let other = try setting.keeper(1)
        await setting.look(other)
        #expect(try Self.facts(other) != Self.facts(keeper))
        setting.server.refusesValues.withLock { $0 = false }
        _ = await setting.step(keeper)
        await setting.look(other)
        #expect(try Self.facts(other) == Self.facts(keeper))
        #expect(setting.authority.count("POST /orders") == orders)
    }

    @Test func `a store that takes no values causes no storm of orders`() async throws {
        let setting = try Setting()
        setting.server.refusesValues.withLock { $0 = true }
        let keeper = try setting.keeper()
        for _ in 0..<3 { _ = await setting.step(keeper) }
        #expect(setting.authority.count("POST /account") == 1)
        #expect(try setting.report(keeper).failures == 1)
    }

    @Test func `a store that lost its last write gets the newer certificate back`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        let former = setting.server.values.withLock { $0 }
        await setting.look(keeper)
        // Certificates begin at a whole second.
        let start = try Self.facts(keeper).start
        while SystemLoopClock().wallNow() < start + .seconds(2) { await Task.yield() }
        #expect(keeper.orderNow("a.test", on: setting.loop.loop))
        keeper.stop()
        for _ in 0..<500 where (try? Self.facts(keeper).start) == start { _ = await setting.step(keeper) }
        let newer = try Self.facts(keeper)
        #expect(newer.start > start)
        setting.server.values.withLock { $0 = former }
        setting.server.maps.withLock { $0 = [:] }
        await setting.look(keeper)
        #expect(try Self.facts(keeper) == newer)
        let next = try setting.keeper(1)
        await setting.look(next)
        #expect(try Self.facts(next) == newer)
    }

    @Test func `failures of one gateway hold the other one back`() async throws {
        let setting = try Setting()
        setting.authority.behave { $0.isDown = true }
        let (one, other) = (try setting.keeper(0), try setting.keeper(1))
        _ = await setting.step(one)
        let calls = setting.authority.calls.count
        #expect(calls == 1)
        _ = await setting.step(other)
        #expect(setting.authority.calls.count == calls)
        #expect(try setting.report(other).failures == 1)
    }

    @Test func `a store that lost everything gets it back`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        await setting.look(keeper)
        setting.server.values.withLock { $0 = [:] }
        setting.server.maps.withLock { $0 = [:] }
        await setting.look(keeper)
        let next = try setting.keeper(1)
        await setting.look(next)
        #expect(try Self.facts(next) == Self.facts(keeper))
        #expect(setting.authority.count("POST /orders") == 1)
    }

    @Test func `the challenge of a gateway that died is answered for a while only`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        let store = AcmeSharedStore(try #require(keeper.settings.sharing), keeper.settings)
        let challenge = PendingChallenge(
            kind: .http01, name: "a.test", token: TestAuthority.token, keyAuthorization: "answer")
        try await store.publish(challenge, at: SystemLoopClock().wallNow())
        await setting.look(keeper)
        #expect(setting.challenges[0].answer(PendingChallenges.path + TestAuthority.token) == "answer")
        await setting.look(keeper, after: .seconds(601))
        #expect(!setting.challenges[0].hasHttp)
        #expect(setting.server.maps.withLock { $0.values.allSatisfy { $0.isEmpty } })
    }

    @Test func `foreign records on the board are passed over`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        setting.server.maps.withLock { maps in
            for name in maps.keys {
                maps[name]?["junk"] = Array(
                    #"{"kind":"http-01","name":"a.test","token":"t","answer":"x","end":9e10}"#.utf8)
                maps[name]?[""] = []
            }
        }
        await setting.look(keeper)
        #expect(!setting.challenges[0].hasHttp)
        #expect(try Self.facts(keeper).issuer == "CN=test-ca")
    }

    @Test func `two gateways with a real Redis server order one certificate`() async throws {
        let redis = try TestRedis()
        func client() throws -> RedisClient {
            // Redis counts real time, of which a busy machine takes seconds.
            RedisClient(RedisDefinition(url: try RedisUrl(optionText: redis.url), timeout: .seconds(10)))
        }
        let setting = try Setting(asked: 0)
        let keepers = try (0..<2).map { try setting.keeper($0, server: client(), notice: .seconds(2)) }
        // As `start` has it: each looks at the board while it orders, or waits.
        await withTaskGroup { group in
            for keeper in keepers {
                group.addTask {
                    await setting.look(keeper)
                    _ = await setting.step(keeper)
                }
                group.addTask {
                    for _ in 0..<1000 where (try? Self.facts(keeper).issuer) != "CN=test-ca" {
                        await setting.look(keeper)
                    }
                }
            }
        }
        #expect(try Self.facts(keepers[0]) == Self.facts(keepers[1]))
        #expect(try Self.facts(keepers[0]).issuer == "CN=test-ca")
        #expect(setting.authority.count("POST /orders") == 1)
    }
}
