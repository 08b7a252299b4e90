import HttpWare
import Testing

@testable import Wares

@Suite struct OfflineStateTests {
    private let noon = WallTime(seconds: 1_800_000_000)

    @Test(arguments: OfflineMode.allCases)
    func `the configured mode counts while nothing is set`(mode: OfflineMode) {
        let state = OfflineState(mode)
        #expect(state.mode(at: noon) == mode)
        #expect(state.override(at: noon) == nil)
    }

    @Test(arguments: OfflineMode.allCases)
    func `a mode that is set counts until its time has come`(mode: OfflineMode) {
        let state = OfflineState(mode == .auto ? .never : .auto)
        let end = noon + .milliseconds(1500)
        state.set(mode, until: end)
        #expect(state.mode(at: noon) == mode)
        #expect(state.override(at: noon) == OfflineState.Override(mode: mode, until: end))
        #expect(state.mode(at: noon + .milliseconds(1499)) == mode)
        #expect(state.mode(at: end) == state.configured)
        #expect(state.override(at: end) == nil)
    }

    @Test func `a mode without an end counts until it is taken back`() {
        let state = OfflineState(.auto)
        state.set(.always)
        #expect(
            state.override(at: WallTime(seconds: .max)) == OfflineState.Override(mode: .always, until: nil))
        state.set(nil)
        #expect(state.mode(at: noon) == .auto)
    }

    @Test(arguments: [Int64.max, .max / 1000, -1, .min])
    func `an end beyond all calendars, or long gone, does not trap`(seconds: Int64) {
        let state = OfflineState(.auto)
        state.set(.always, until: WallTime(seconds: seconds))
        #expect(state.mode(at: noon) == (seconds > 0 ? .always : .auto))
    }
}
