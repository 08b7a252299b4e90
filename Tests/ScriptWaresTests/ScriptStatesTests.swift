import HttpWare
import Testing

@testable import ScriptWares

@Suite struct ScriptStatesTests {
    private func loop() throws -> LoopScript {
        var mistakes = LoadedScript.Mistakes()
        let source = Array("return { request = function() end }".utf8)
        let script = try LoadedScript(source, name: "s", limits: .init(), mistakes: &mistakes) { $0 }
        return LoopScript(script, try script.makeState())
    }

    private func instant(_ milliseconds: Int64) -> LoopInstant { LoopInstant(nanoseconds: milliseconds * 1_000_000) }

    @Test func `a script rests after a long run for as long as that took`() throws {
        let loop = try loop()
        #expect(!loop.rests(at: instant(10)))
        loop.hasRun(from: instant(10), to: instant(15))
        #expect(loop.rests(at: instant(15)) && loop.rests(at: instant(19)))
        #expect(!loop.rests(at: instant(20)))
        // Also if the clock is asked for an earlier time afterwards: the rest has ended.
        #expect(!loop.rests(at: instant(19)))
    }

    @Test(arguments: [(0, false), (250, false), (251, true), (900, true)])
    func `a script rests only after a run of more than 250 microseconds`(microseconds: Int, rests: Bool) throws {
        let loop = try loop()
        loop.hasRun(from: instant(10), to: instant(10) + .microseconds(microseconds))
        #expect(loop.rests(at: instant(10)) == rests)
    }
}
