import Glibc
import HttpWare
import HttpWareTesting
import Synchronization
import Testing

@testable import Acme
@testable import Credentials

@Suite struct CertificateKeeperTests {
    /// A keeper of `a.test`, its authority and its store.
    private final class Setting: Sendable {
        let folder = TestFolder()
        let challenges = PendingChallenges()
        let authority: TestAuthority
        let loop: TestLoop
        let changes = Mutex(0)

        init() throws {
            authority = TestAuthority(challenges)
            loop = try TestLoop()
        }

        func keeper(_ domains: [String] = ["a.test"]) throws -> CertificateKeeper {
            var settings = AcmeSettings(domains: domains, store: "\(folder.path)/store/acme")
            settings.directory = try #require(TestAuthority.place)
            settings.challenge = .http01
            var limits = AcmeLimits()
            limits.pause = .milliseconds(1) ... .milliseconds(2)
            return try CertificateKeeper(settings, challenges: challenges, http: authority, limits: limits) {
                self.changes.withLock { $0 += 1 }
            }
        }

        /// One step; the answer in seconds.
        func step(_ keeper: CertificateKeeper) async -> Int64 {
            await loop.run { await keeper.step(on: self.loop.loop).components.seconds }
        }

        func report(_ keeper: CertificateKeeper) throws -> CertificateKeeper.Report {
            try #require(keeper.report(at: SystemLoopClock().wallNow()).first)
        }
    }

    private static func facts(_ keeper: CertificateKeeper) throws -> CertificateFacts {
        try CertificateFacts(try #require(keeper.identities.first).chain)
    }

    @Test func `a placeholder serves until the certificate is there, and the next start has it at once`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        #expect(try Self.facts(keeper).issuer == "CN=httpware: no certificate yet")
        _ = await setting.step(keeper)
        #expect(try Self.facts(keeper).issuer == "CN=test-ca")
        #expect(setting.changes.withLock { $0 } == 1)
        // The authority has no renewal information: it is asked whether it has some every six hours.
        let rest = await setting.step(keeper)
        #expect((21_500...21_600).contains(rest))
        let due = try setting.report(keeper).due - SystemLoopClock().wallNow()
        #expect(abs(due.components.seconds - 60 * 86_400) < 60)
        let calls = setting.authority.calls.count
        let next = try setting.keeper()
        #expect(try Self.facts(next) == Self.facts(keeper))
        _ = await setting.step(next)
        #expect(setting.authority.calls.count == calls)
    }

    @Test func `files are for their owner only, and the account is made once`() async throws {
        let setting = try Setting()
        _ = try await setting.step(setting.keeper(["a.test", "b.test"]))
        #expect(setting.authority.count("POST /account") == 1)
        let listing = setting.folder.run(
            "find store -type f -printf '%m %f\\n' | sort; find store -type d -printf '%m\\n'")
        let lines = Set(listing.split(separator: "\n").map(String.init))
        let names = ["a.test.json", "a.test.lock", "a.test.pem", "b.test.json", "b.test.lock", "b.test.pem"]
        #expect(lines == Set((names + ["account.json"]).map { "600 \($0)" } + ["700"]))
    }

    @Test func `a failure backs off, also over a restart`() async throws {
        let setting = try Setting()
        setting.authority.behave { $0.isDown = true }
        let keeper = try setting.keeper()
        let rest = await setting.step(keeper)
        #expect((55...66).contains(rest))
        let calls = setting.authority.calls.count
        for again in [keeper, try setting.keeper()] {
            _ = await setting.step(again)
            #expect(setting.authority.calls.count == calls)
            let report = try setting.report(again)
            #expect(report.failures == 1)
            #expect(report.problem == "the certificate authority: ca.test refuses connections")
        }
    }

    @Test func `of two names one may fail`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper(["a.test", "b.test"])
        setting.authority.behave { $0.lies = ["identifier": .object([("type", "dns"), ("value", "a.test")])] }
        _ = await setting.step(keeper)
        let reports = keeper.report(at: SystemLoopClock().wallNow())
        #expect(reports.map(\.failures) == [0, 1])
        #expect(reports[0].certificate != nil && reports[1].certificate == nil)
    }

    @Test func `a forgotten account is made again`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        setting.authority.behave { $0.forgetsAccount = true }
        _ = await setting.step(keeper)
        #expect(setting.authority.count("POST /account") == 2)
        #expect(try setting.report(keeper).certificate != nil)
    }

    @Test func `renewal information is asked for once, and a lying one causes no storm`() async throws {
        let setting = try Setting()
        setting.authority.behave { $0.window = (WallTime(seconds: 1), WallTime(seconds: 2)) }
        let keeper = try setting.keeper()
        for _ in 0..<5 { _ = await setting.step(keeper) }
        #expect(setting.authority.count("POST /orders") == 1)
        #expect(setting.authority.calls.count { $0.hasPrefix("GET /renewal/") } == 1)
        let due = try setting.report(keeper).due - SystemLoopClock().wallNow()
        #expect(due > .seconds(86_400) && due < .seconds(2 * 86_400))
    }

    @Test func `a certificate that is due is renewed, and the former one is named`() async throws {
        let setting = try Setting()
        setting.authority.behave {
            $0.days = 0
            $0.window = (WallTime(seconds: 1), WallTime(seconds: 2))
        }
        let keeper = try setting.keeper()
        // One of no days has expired when it arrives: it is refused, and nothing is put in its place.
        _ = await setting.step(keeper)
        #expect(try setting.report(keeper).problem?.contains("expired") == true)
        #expect(try Self.facts(keeper).issuer == "CN=httpware: no certificate yet")
    }

    @Test func `a certificate that a client asks for is used, even if it ends earlier`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        setting.authority.behave { $0.days = 30 }
        #expect(keeper.orderNow("a.test", on: setting.loop.loop))
        #expect(!keeper.orderNow("b.test", on: setting.loop.loop))
        try await eventually {
            let facts = try Self.facts(keeper)
            return facts.end - facts.start == .seconds(30 * 86_400)
        }
        keeper.stop()
    }

    @Test func `a wish for one name does not end the wish for another one`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper(["a.test", "b.test"])
        _ = await setting.step(keeper)
        #expect(setting.authority.count("POST /orders") == 2)
        #expect(keeper.orderNow("a.test", on: setting.loop.loop))
        // The order of the first one has begun.
        try await eventually(every: .milliseconds(1)) { setting.authority.count("POST /orders") > 2 }
        #expect(keeper.orderNow("b.test", on: setting.loop.loop))
        keeper.stop()
        await setting.loop.settle()
        for _ in 0..<500 {
            let now = SystemLoopClock().wallNow()
            guard keeper.report(at: now).contains(where: { $0.due <= now }) else { break }
            _ = await setting.step(keeper)
        }
        // An order that the stop cut off is made again: its name may be there twice.
        #expect(Set(setting.authority.issued.dropFirst(2)) == ["a.test", "b.test"])
    }

    @Test func `while another process orders, nothing is asked of the authority`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        let folder = AcmeFolder(keeper.settings)
        let lock = try #require(try await folder.tryLock("a.test"))
        let rest = await setting.step(keeper)
        #expect(rest == 5)
        #expect(setting.authority.calls.isEmpty)
        await lock.release()
        _ = await setting.step(keeper)
        #expect(try setting.report(keeper).certificate != nil)
    }

    @Test func `the certificate of another process is taken, and none is ordered`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = try await setting.step(setting.keeper())
        let calls = setting.authority.calls.count
        _ = await setting.step(keeper)
        #expect(setting.authority.calls.count == calls)
        #expect(try Self.facts(keeper).issuer == "CN=test-ca")
        #expect(setting.changes.withLock { $0 } == 2)
    }

    @Test func `files that are damaged are told or replaced, and never followed`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        let folder = AcmeFolder(keeper.settings).path
        _ = setting.folder.run("echo junk > '\(folder)/a.test.pem'; echo junk > '\(folder)/a.test.json'")
        let next = try setting.keeper()
        #expect(try Self.facts(next).issuer == "CN=httpware: no certificate yet")
        _ = await setting.step(next)
        #expect(try Self.facts(next).issuer == "CN=test-ca")
        _ = setting.folder.run("echo junk > '\(folder)/account.json'; rm '\(folder)/a.test.pem'")
        let last = try setting.keeper()
        _ = await setting.step(last)
        #expect(try setting.report(last).problem?.contains("is not a file of an account") == true)
    }

    @Test func `an account that is never known is made twice, and the name waits`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        setting.authority.behave { $0.forgetsAlways = true }
        _ = await setting.step(keeper)
        let calls = setting.authority.calls.count
        #expect(setting.authority.count("POST /account") == 2 && calls < 10)
        for _ in 0..<5 { _ = await setting.step(keeper) }
        #expect(setting.authority.calls.count == calls)
        #expect(try setting.report(keeper).failures == 1)
    }

    @Test(
        arguments: [
            { @Sendable (manner: inout TestAuthority.Manner) in manner.usesOtherKey = true },
            { @Sendable (manner: inout TestAuthority.Manner) in manner.certified = ["b.test"] },
            { @Sendable (manner: inout TestAuthority.Manner) in manner.days = 0 },
            { @Sendable (manner: inout TestAuthority.Manner) in manner.isDoubtful = true },
            { @Sendable (manner: inout TestAuthority.Manner) in
                manner.raw = ["/dir": HttpResponse(.found, fields: ["Location": "https://ca.test/dir"])]
            },
        ] as [@Sendable (inout TestAuthority.Manner) -> Void])
    func `whatever the authority lies, the present certificate stays, and there is no storm`(
        behave: @Sendable (inout TestAuthority.Manner) -> Void
    ) async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        _ = await setting.step(keeper)
        let before = try #require(keeper.identities.first).chain.bytes
        let folder = AcmeFolder(keeper.settings)
        let file = try folder.readNow("a.test.pem")
        setting.authority.behave { behave(&$0) }
        #expect(keeper.orderNow("a.test", on: setting.loop.loop))
        try await eventually { try setting.report(keeper).failures > 0 }
        keeper.stop()
        await setting.loop.settle()
        #expect(try setting.report(keeper).failures == 1)
        #expect(keeper.identities.first?.chain.bytes == before)
        #expect(try folder.readNow("a.test.pem") == file)
        let calls = setting.authority.calls.count
        for _ in 0..<5 { _ = await setting.step(keeper) }
        #expect(setting.authority.calls.count == calls)
    }
}
