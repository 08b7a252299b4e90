import Testing

@testable import HttpWare

@Suite struct IdleSurplusTests {
    @Test func `connections that the next batch takes again are not closed`() {
        var surplus = IdleSurplus()
        surplus.beginWindow(idle: 129)
        for _ in 0..<10 {
            // A batch of 512 requests takes all, and gives them back.
            surplus.shrank(to: 0)
            #expect(surplus.step(idle: 512, most: 128) == .close(0, next: IdleSurplus.window))
            #expect(surplus.isWatched)
        }
    }

    @Test func `connections that were idle for a whole window are closed, down to the limit`() {
        var surplus = IdleSurplus()
        surplus.beginWindow(idle: 129)
        #expect(surplus.step(idle: 300, most: 128) == .close(129, next: IdleSurplus.window))
        #expect(surplus.step(idle: 171, most: 128) == .close(43, next: IdleSurplus.window))
        #expect(surplus.step(idle: 128, most: 128) == .rest)
        #expect(!surplus.isWatched)
    }

    @Test func `connections in use during the window stay`() {
        var surplus = IdleSurplus()
        surplus.beginWindow(idle: 300)
        surplus.shrank(to: 20)
        surplus.shrank(to: 50)
        #expect(surplus.step(idle: 300, most: 128) == .close(20, next: IdleSurplus.window))
        #expect(surplus.step(idle: 280, most: 128) == .close(152, next: IdleSurplus.window))
    }

    @Test func `one turn of the loop closes a bounded number, and the next one goes on`() {
        var surplus = IdleSurplus()
        surplus.beginWindow(idle: 1000)
        #expect(surplus.step(idle: 1000, most: 100) == .close(256, next: IdleSurplus.pause))
        #expect(surplus.step(idle: 744, most: 100) == .close(256, next: IdleSurplus.pause))
        // 600 are needed again meanwhile, and come back.
        surplus.shrank(to: 0)
        #expect(surplus.step(idle: 488, most: 100) == .close(0, next: IdleSurplus.window))
        #expect(surplus.step(idle: 488, most: 100) == .close(256, next: IdleSurplus.pause))
        #expect(surplus.step(idle: 232, most: 100) == .close(132, next: IdleSurplus.window))
        #expect(surplus.step(idle: 100, most: 100) == .rest)
    }
}
