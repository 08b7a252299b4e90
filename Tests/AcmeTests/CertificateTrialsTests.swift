import HttpWare
import HttpWareTesting
import Testing

@testable import Acme
@testable import Credentials

@Suite(.timeLimit(.minutes(2))) struct CertificateTrialsTests {
    /// A keeper of `a.test` and `b.test` with an authority, the staging directory of that authority, and a store.
    private final class Setting: Sendable {
        let folder = TestFolder()
        let challenges = PendingChallenges()
        let real: TestAuthority
        let staging: TestAuthority
        let loop: TestLoop

        init() throws {
            real = TestAuthority(challenges)
            staging = TestAuthority(challenges, base: "https://staging.test")
            loop = try TestLoop()
        }

        func keeper(hasStaging: Bool = true, external: ExternalAccount? = nil) throws -> CertificateKeeper {
            var settings = AcmeSettings(domains: ["a.test", "b.test"], store: "\(folder.path)/store/acme")
            settings.directory = try #require(TestAuthority.place)
            settings.staging = hasStaging ? EndpointUrl("https://staging.test/dir") : nil
            settings.challenge = .http01
            settings.externalAccount = external
            var limits = AcmeLimits()
            limits.pause = .milliseconds(1) ... .milliseconds(2)
            limits.calls = 60
            let http = TestAuthorities(authorities: ["ca.test": real, "staging.test": staging])
            return try CertificateKeeper(settings, challenges: challenges, http: http, limits: limits) {}
        }

        func step(_ keeper: CertificateKeeper) async {
            await loop.run { _ = await keeper.step(on: self.loop.loop) }
        }

        func report(_ keeper: CertificateKeeper, _ name: String = "a.test") throws -> CertificateKeeper.Report {
            try #require(keeper.report(at: SystemLoopClock().wallNow()).first { $0.name == name })
        }

        /// Begins a trial and waits for its end. Answers why it failed; `nil` if it succeeded.
        func failure(of keeper: CertificateKeeper, _ name: String = "a.test") async throws -> String? {
            #expect(keeper.tryNow(name, on: loop.loop))
            try await eventually {
                if case .underWay = try report(keeper, name).trial { false } else { true }
            }
            return switch try report(keeper, name).trial {
            case .passed: nil
            case .failed(let reason, _): reason
            case .underWay: "the trial began again"
            case nil: "no trial began"
            }
        }

        /// The files of the real authority, with their content.
        var files: String { folder.run("cd store/acme/ca.test-dir && sha256sum *") }
    }

    @Test func `a trial is a whole order at the staging directory, and touches nothing of the real one`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        await setting.step(keeper)
        let (calls, files) = (setting.real.calls, setting.files)
        let before = try #require(keeper.identities.first).chain.bytes
        #expect(try setting.report(keeper).trial == nil)
        #expect(files.split(separator: "\n").count == 7)
        #expect(try await setting.failure(of: keeper) == nil)
        #expect(setting.staging.issued == ["a.test"] && setting.staging.complaints.isEmpty)
        #expect(setting.real.calls == calls && setting.files == files)
        #expect(keeper.identities.first?.chain.bytes == before)
        #expect(!setting.challenges.hasHttp)
        let next = try setting.keeper()
        #expect(next.identities.first?.chain.bytes == before)
        // The account for trials is kept, and used again.
        #expect(try await setting.failure(of: next, "b.test") == nil)
        #expect(setting.staging.count("POST /account") == 1)
        let listing = setting.folder.run("cd store/acme/staging.test-dir && stat -c '%a %n' *")
        #expect(listing == "600 account.json\n")
    }

    @Test func `a trial that fails says why, and counts as no failure of the real directory`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        setting.staging.behave { $0.isDoubtful = true }
        let reason = try await setting.failure(of: keeper)
        #expect(reason == "the proof of control of a.test failed: connection: no route to host")
        let report = try setting.report(keeper)
        #expect(report.failures == 0 && report.problem == nil && report.certificate == nil)
        #expect(setting.real.calls.isEmpty && !setting.challenges.hasHttp)
        setting.staging.behave { $0.isDoubtful = false }
        #expect(try await setting.failure(of: keeper) == nil)
    }

    @Test(
        arguments: [
            ({ @Sendable (manner: inout TestAuthority.Manner) in manner.refusedNonces = .max }, "badNonce", 8),
            ({ @Sendable (manner: inout TestAuthority.Manner) in manner.isEndless = true }, "after 60 calls", 60),
            (
                { @Sendable (manner: inout TestAuthority.Manner) in manner.usesOtherKey = true },
                "is not the key of the certificate", 20
            ), ({ @Sendable (manner: inout TestAuthority.Manner) in manner.isDown = true }, "refuses", 1),
            (
                { @Sendable (manner: inout TestAuthority.Manner) in manner.needsExternalAccount = true },
                "needs an external account", 1
            ),
        ] as [(@Sendable (inout TestAuthority.Manner) -> Void, String, Int)])
    func `a staging directory that lies ends the trial, with few calls`(
        behave: @Sendable (inout TestAuthority.Manner) -> Void, reason: String, calls: Int
    ) async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        setting.staging.behave { behave(&$0) }
        #expect(try await setting.failure(of: keeper)?.contains(reason) == true)
        #expect(setting.staging.calls.count <= calls)
        #expect(setting.real.calls.isEmpty)
    }

    @Test func `a trial waits while a certificate for the name is ordered`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        let lock = try #require(try await AcmeFolder(keeper.settings).tryLock("a.test"))
        #expect(keeper.tryNow("a.test", on: setting.loop.loop))
        await setting.step(keeper)
        #expect(try setting.report(keeper).trial == .underWay)
        #expect(setting.staging.calls.isEmpty)
        await lock.release()
        #expect(try await setting.failure(of: keeper) == nil)
        #expect(setting.staging.issued == ["a.test"])
    }

    @Test func `no trial begins without a staging directory, for another name, or after the end`() async throws {
        let setting = try Setting()
        #expect(try !setting.keeper(hasStaging: false).tryNow("a.test", on: setting.loop.loop))
        let keeper = try setting.keeper()
        #expect(!keeper.tryNow("c.test", on: setting.loop.loop))
        keeper.stop()
        _ = keeper.tryNow("a.test", on: setting.loop.loop)
        await setting.loop.settle()
        #expect(try setting.report(keeper).trial == nil)
        #expect(setting.staging.calls.isEmpty)
    }

    @Test func `both directories are asked, and one that does not fit is named`() async throws {
        let setting = try Setting()
        let keeper = try setting.keeper()
        setting.staging.behave { $0.needsExternalAccount = true }
        let found = await setting.loop.run { await keeper.checkAuthorities(on: setting.loop.loop) }
        #expect(found.map(\.directory) == ["https://ca.test/dir", "https://staging.test/dir"])
        #expect(found[0].failure == nil)
        #expect(found[1].failure?.isRefusal("externalAccountRequired") == true)
        #expect(setting.real.calls == ["GET /dir"] && setting.staging.calls == ["GET /dir"])
    }
}
