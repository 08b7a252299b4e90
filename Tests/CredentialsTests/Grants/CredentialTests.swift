import Foundation
import HttpWare
import HttpWareTesting
import Testing

@testable import Credentials

@Suite(.timeLimit(.minutes(10))) struct CredentialTests {
    /// A credential with a script for its token endpoint, on a loop whose clock stands still.
    private struct Stage {
        let client = ScriptedClient()
        let clock = ManualClock()
        let loop: EventLoop
        let folder: URL
        var definition: CredentialDefinition

        init(_ change: (inout CredentialDefinition) -> Void = { _ in }) throws {
            loop = try EventLoop.start(name: "test", clock: clock)
            folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            definition = CredentialDefinition(name: "orders", grant: .refreshToken)
            definition.tokenUrl = EndpointUrl("http://127.0.0.1:9/token")
            definition.clientId = "gateway"
            definition.refreshToken = Secret("refresh-0")
            definition.retry = 0
            definition.file = FilePath(folder.appending(path: "token.json").path)
            change(&definition)
        }

        func end() {
            loop.stop()
            loop.join()
            try? FileManager.default.removeItem(at: folder)
        }

        func make() -> Credential { Credential(definition, client: client) }

        func refresh(_ credential: Credential) async -> CredentialFailure? {
            await Task(executorPreference: loop) { await credential.refresh() }.value
        }

        func current(_ credential: Credential) async -> String? {
            await loop.submit { credential.current(clock.wallNow())?.value.revealed }
        }

        /// As a request does that needs a token: waits for it.
        func enter(_ credential: Credential) async -> String? {
            let entry = await loop.submit {
                credential.takePlace(bytes: 100, limits: HoldLimits(), at: clock.wallNow())
            }
            if case .held(let place) = entry {
                _ = await Task(executorPreference: loop) { try? await place.outcome() }.value
            }
            return await current(credential)
        }

        var file: String { (try? String(contentsOfFile: definition.file?.path ?? "", encoding: .utf8)) ?? "" }

        func write(_ text: String) throws {
            try text.write(toFile: definition.file?.path ?? "", atomically: true, encoding: .utf8)
        }
    }

    private func token(_ number: Int) -> String {
        #"{"access_token":"token-\#(number)","expires_in":100,"refresh_token":"refresh-\#(number)"}"#
    }

    @Test func `tokens are kept in a file that its owner alone can read, and a new process begins with them`()
        async throws
    {
        let stage = try Stage()
        defer { stage.end() }
        stage.client.answerCall(json: token(1))
        #expect(await stage.enter(stage.make()) == "token-1")
        while !stage.file.contains("refresh-1") { await Task.yield() }
        let mode = try FileManager.default.attributesOfItem(atPath: stage.definition.file?.path ?? "")[
            .posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(try FileManager.default.contentsOfDirectory(atPath: stage.folder.path) == ["token.json"])
        #expect(await stage.enter(stage.make()) == "token-1")
        #expect(stage.client.requests.count == 1)
    }

    @Test func `waiting requests go on in the order in which they came, some in each turn of the loop`() async throws {
        let stage = try Stage()
        defer { stage.end() }
        let credential = stage.make()
        let order = ThreadLock<[Int]>([])
        let waiting = await stage.loop.submit {
            (0..<200).map { number in
                let entry = credential.takePlace(bytes: 100, limits: HoldLimits(), at: stage.clock.wallNow())
                return Task(executorPreference: stage.loop) {
                    if case .held(let place) = entry { _ = try? await place.outcome() }
                    order.withLock { $0.append(number) }
                }
            }
        }
        // All of them wait before there is an answer.
        while credential.report().held < 200 { await Task.yield() }
        stage.client.answerCall(json: token(1))
        for task in waiting { await task.value }
        #expect(order.withLock { $0 } == Array(0..<200))
    }

    @Test func `the shared file is read again before a refresh`() async throws {
        let stage = try Stage()
        defer { stage.end() }
        let (one, other) = (stage.make(), stage.make())
        stage.client.answerCall(json: token(1))
        #expect(await stage.enter(one) == "token-1")
        #expect(await stage.enter(other) == "token-1")
        stage.clock.advance(by: .seconds(100))
        stage.client.answerCall(json: token(2))
        #expect(await stage.enter(one) == "token-2")
        #expect(await stage.enter(other) == "token-2")
        #expect(stage.client.requests.count == 2)
        #expect(other.report().history.first?.outcome == .adopted)
    }

    @Test func `the shared file is read again after invalid_grant`() async throws {
        let stage = try Stage()
        defer { stage.end() }
        let credential = stage.make()
        async let result = stage.enter(credential)
        while stage.client.waitingCount == 0 { await Task.yield() }
        // Another program rotates meanwhile.
        let mark = StoredTokens.mark(Secret("refresh-0"))
        try stage.write(#"{"refresh_token":"refresh-7","origin":"\#(mark)"}"#)
        stage.client.answerCall(.badRequest, json: #"{"error":"invalid_grant"}"#)
        while stage.client.waitingCount == 0 { await Task.yield() }
        #expect(stage.client.requests.last?.content.text?.contains("refresh_token=refresh-7") == true)
        stage.client.answerCall(json: token(8))
        #expect(await result == "token-8")
    }

    @Test(arguments: [400, 401])
    func `a refusal without a reason is final, looks into the file, and does not spend the refresh token`(status: Int)
        async throws
    {
        let stage = try Stage { $0.window.per = .seconds(5) }
        defer { stage.end() }
        let credential = stage.make()
        stage.client.answerCall(try #require(HttpStatus(status)), json: "nonsense")
        #expect(await stage.enter(credential) == nil)
        #expect(stage.client.requests.count == 1)
        #expect(credential.report().history.first?.outcome == .refused)
        // The tokens between have gone.
        stage.clock.advance(by: .seconds(5))
        stage.client.answerCall(json: token(1))
        #expect(await stage.enter(credential) == "token-1")
        #expect(stage.client.requests.last?.content.text?.contains("refresh_token=refresh-0") == true)
    }

    @Test func `after a refusal without a reason, what another gateway wrote meanwhile is taken over`() async throws {
        let stage = try Stage()
        defer { stage.end() }
        let credential = stage.make()
        async let result = stage.enter(credential)
        while stage.client.waitingCount == 0 { await Task.yield() }
        let mark = StoredTokens.mark(Secret("refresh-0"))
        try stage.write(#"{"refresh_token":"refresh-7","origin":"\#(mark)"}"#)
        stage.client.answerCall(.unauthorized, json: "nonsense")
        while stage.client.waitingCount == 0 { await Task.yield() }
        stage.client.answerCall(json: token(8))
        #expect(await result == "token-8")
    }

    @Test func `one refresh is in flight over a reload: the new credential waits for it and takes over the result`()
        async throws
    {
        let stage = try Stage {
            $0.file = nil
            $0.timeout = .seconds(60)
        }
        defer { stage.end() }
        let former = stage.make()
        async let first = stage.enter(former)
        while stage.client.waitingCount == 0 { await Task.yield() }
        var definition = stage.definition
        definition.refreshBefore = .seconds(7)
        let credential = Credential(definition, after: [former], client: stage.client)
        async let second = stage.enter(credential)
        while credential.report().state != .refreshing { await Task.yield() }
        #expect(stage.client.requests.count == 1)
        stage.client.answerCall(json: token(1))
        #expect(await first == "token-1")
        while credential.report().state == .refreshing {
            stage.clock.advance(by: .milliseconds(10))
            await Task.yield()
        }
        #expect(await second == "token-1")
        #expect(stage.client.requests.count == 1)
        // The refresh tokens go on from there, with any redeemer.
        stage.clock.advance(by: .seconds(100))
        stage.client.answerCall(json: token(2))
        #expect(await stage.enter(former) == "token-2")
        #expect(await stage.enter(credential) == "token-2")
        #expect(
            stage.client.requests.map { $0.content.text?.contains("refresh_token=refresh-1") } == [false, true])
    }

    @Test func `another refresh token, or other scopes, start again from the beginning`() async throws {
        var stage = try Stage { $0.file = nil }
        defer { stage.end() }
        let former = stage.make()
        stage.client.answerCall(json: token(1))
        #expect(await stage.enter(former) == "token-1")
        stage.definition.scopes = ["read"]
        stage.client.answerCall(json: token(2))
        let scoped = Credential(stage.definition, after: [former], client: stage.client)
        #expect(await stage.enter(scoped) == "token-2")
        #expect(stage.client.requests.last?.content.text?.contains("refresh_token=refresh-1") == true)
        stage.definition.refreshToken = Secret("written-anew")
        stage.client.answerCall(json: token(3))
        let other = Credential(stage.definition, after: [former, scoped], client: stage.client)
        #expect(await stage.enter(other) == "token-3")
        #expect(stage.client.requests.last?.content.text?.contains("refresh_token=written-anew") == true)
    }

    @Test func `a token is fresh while it may be sent and nothing else is to be done`() async throws {
        let stage = try Stage {
            $0.file = nil
            $0.refreshBefore = .seconds(10)
        }
        defer { stage.end() }
        let credential = stage.make()
        #expect(credential.freshNumber(at: stage.clock.wallNow()) == nil)
        stage.client.answerCall(json: token(1))
        _ = await stage.enter(credential)
        let began = stage.clock.wallNow()
        #expect(credential.freshNumber(at: began) == 1)
        #expect(credential.freshNumber(at: began + .seconds(89)) == 1)
        #expect(credential.freshNumber(at: began + .seconds(90)) == nil)
        _ = await stage.loop.submit { credential.reject(7, at: began) }
        #expect(credential.freshNumber(at: began) == 1)
        _ = await stage.loop.submit { credential.reject(1, at: began) }
        #expect(credential.freshNumber(at: began) == nil)
        while stage.client.waitingCount == 0 { await Task.yield() }
        stage.client.answerCall(json: token(2))
        while credential.freshNumber(at: began) == nil { await Task.yield() }
        #expect(credential.freshNumber(at: began) == 2)
        await credential.clear()
        #expect(credential.freshNumber(at: began) == nil)
    }

    @Test func `a refresh token that was written again comes before the one in the file`() async throws {
        var stage = try Stage()
        defer { stage.end() }
        stage.client.answerCall(json: token(1))
        _ = await stage.enter(stage.make())
        while !stage.file.contains("refresh-1") { await Task.yield() }
        stage.definition.refreshToken = Secret("written-anew")
        stage.client.answerCall(json: token(5))
        #expect(await stage.enter(stage.make()) == "token-5")
        #expect(stage.client.requests.last?.content.text?.contains("refresh_token=written-anew") == true)
    }

    @Test(arguments: [
        "", "{", "[]", "\u{0}", #"{"access_token":1}"#, #"{"access_token":"a\nb","expires_at":9999999999}"#,
    ])
    func `a file that is not one of ours is as none`(text: String) async throws {
        let stage = try Stage()
        defer { stage.end() }
        try stage.write(text)
        stage.client.answerCall(json: token(1))
        #expect(await stage.enter(stage.make()) == "token-1")
    }

    @Test func `a lock that another gateway holds is waited for, and its token is taken over`() async throws {
        let stage = try Stage {
            $0.lock = .file
            $0.timeout = .seconds(60)
        }
        defer { stage.end() }
        let file = TokenFile(path: stage.definition.file?.path ?? "")
        let lock = try #require(try file.tryLock())
        #expect(try file.tryLock() == nil)
        let credential = stage.make()
        async let result = stage.enter(credential)
        while credential.report().state != .refreshing { await Task.yield() }
        #expect(stage.client.requests.isEmpty)
        let expires = stage.clock.wallNow() + .seconds(100_000)
        try file.write(
            StoredTokens(
                accessToken: Secret("theirs"), expires: expires, refreshToken: Secret("refresh-9"),
                origin: StoredTokens.mark(Secret("refresh-0"))))
        file.unlock(lock)
        while credential.report().state == .refreshing {
            stage.clock.advance(by: .milliseconds(10))
            await Task.yield()
        }
        #expect(await result == "theirs")
        #expect(stage.client.requests.isEmpty)
    }

    @Test func `a call that may succeed later is made again, one that was refused is not`() async throws {
        let stage = try Stage {
            $0.retry = 2
            $0.file = nil
        }
        defer { stage.end() }
        let credential = stage.make()
        stage.client.answerCall(.serviceUnavailable, json: "{}")
        stage.client.answerCall(.success(HttpResponse(.ok, content: .text("<html>"))))
        stage.client.answerCall(json: token(1))
        async let failure = stage.refresh(credential)
        while stage.client.requests.count < 3 {
            stage.clock.advance(by: .milliseconds(50))
            await Task.yield()
        }
        #expect(await failure == nil)
        #expect(await stage.current(credential) == "token-1")
        stage.client.answerCall(.unauthorized, json: #"{"error":"invalid_client"}"#)
        #expect(await stage.refresh(credential)?.kind == .refused)
        #expect(stage.client.requests.count == 4)
        // The token at hand is as good as before.
        #expect(await stage.current(credential) == "token-1")
    }

    @Test func `clear forgets tokens and file`() async throws {
        let stage = try Stage()
        defer { stage.end() }
        let credential = stage.make()
        stage.client.answerCall(json: token(1))
        _ = await stage.enter(credential)
        while !stage.file.contains("refresh-1") { await Task.yield() }
        await credential.clear()
        #expect(await stage.current(credential) == nil)
        #expect(stage.file.isEmpty)
    }

    @Test func `the lifetime is counted from when the request was sent, except for at most half of it`() async throws {
        let stage = try Stage { $0.file = nil }
        defer { stage.end() }
        for (wait, left) in [(30, 70), (90, 50)] {
            let credential = stage.make()
            async let failure = stage.refresh(credential)
            while stage.client.waitingCount == 0 { await Task.yield() }
            stage.clock.advance(by: .seconds(wait))
            stage.client.answerCall(json: token(1))
            #expect(await failure == nil)
            let expires = try #require(credential.report().expires)
            #expect(expires.seconds - stage.clock.wallNow().seconds == Int64(left))
        }
    }

    @Test func `a static token is there at once, and is not renewed`() async throws {
        let stage = try Stage()
        defer { stage.end() }
        var definition = CredentialDefinition(name: "key", grant: .static)
        definition.value = Secret("fixed")
        let credential = Credential(definition, client: stage.client)
        #expect(await stage.current(credential) == "fixed")
        #expect(credential.freshNumber(at: stage.clock.wallNow()) == 1)
        #expect(await stage.refresh(credential)?.kind == .rejected)
        #expect(stage.client.requests.isEmpty)
    }
}
