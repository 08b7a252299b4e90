import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

/// The RFCs about caches, line by line, with responses kept in memory and on disk.
@Suite struct Rfc9111Tests {
    private func run(_ trial: CacheTrial, _ kind: CacheStage.Kind) async throws {
        let stage = try await CacheStage(kind: kind) { if trial.isPrivate { $0.policy.mode = .private } }
        try stage.respond(trial.status, trial.answer, "first")
        let first = try await stage.send(trial.method, trial.path, trial.asks)
        #expect(first.status == trial.status)
        stage.settle()
        await stage.advance(trial.wait)
        try stage.respond(["ETag: \"second\""], "second", always: true)
        let asked = stage.asked
        let second = try await stage.send(trial.thenMethod, trial.thenPath, trial.then)
        let isConditional = stage.last.contains(.ifNoneMatch) || stage.last.contains(.ifModifiedSince)
        switch trial.outcome {
        case .stored: #expect(stage.asked == asked)
        case .asked: #expect(stage.asked == asked + 1 && isConditional == hasConditions(trial.then))
        case .validated: #expect(stage.asked == asked + 1 && isConditional)
        case .refused(let status): #expect(stage.asked == asked && second.status == status)
        }
        if trial.outcome == .stored {
            #expect(second.status == trial.thenStatus)
            let hasContent = trial.thenMethod == .get && trial.thenStatus == trial.status && trial.status != 204
            if hasContent { #expect(second.text == "first") }
        }
        for line in trial.has {
            let parts = line.split(separator: ":", maxSplits: 1)
            let name = try #require(FieldName(String(parts[0])))
            #expect(second[name] == (parts.count > 1 ? String(parts[1].drop { $0 == " " }) : nil))
        }
    }

    private func hasConditions(_ lines: [String]) -> Bool {
        lines.contains { $0.hasPrefix("If-None-Match") || $0.hasPrefix("If-Modified-Since") }
    }

    @Test(arguments: CacheTrial.storing, CacheStage.Kind.ownOnes)
    func `responses are stored as RFC 9111 tells`(trial: CacheTrial, kind: CacheStage.Kind) async throws {
        try await run(trial, kind)
    }

    @Test(arguments: CacheTrial.freshness, CacheStage.Kind.ownOnes)
    func `how long it is fresh`(trial: CacheTrial, kind: CacheStage.Kind) async throws { try await run(trial, kind) }

    @Test(arguments: CacheTrial.wishes, CacheStage.Kind.ownOnes)
    func `requests ask caches for fresh or stored responses`(trial: CacheTrial, kind: CacheStage.Kind) async throws {
        try await run(trial, kind)
    }

    @Test(arguments: CacheTrial.varying, CacheStage.Kind.ownOnes)
    func `which requests a response answers`(trial: CacheTrial, kind: CacheStage.Kind) async throws {
        try await run(trial, kind)
    }

    @Test(arguments: CacheTrial.validating, CacheStage.Kind.ownOnes)
    func `how it is validated, and what conditional requests and those for parts are answered`(
        trial: CacheTrial, kind: CacheStage.Kind
    ) async throws { try await run(trial, kind) }

    @Test(arguments: CacheTrial.extending, CacheStage.Kind.ownOnes)
    func `targeted fields, stale responses and cookies`(trial: CacheTrial, kind: CacheStage.Kind) async throws {
        try await run(trial, kind)
    }
}
