import Testing

@testable import HttpWare
@testable import Wares

@Suite struct RateTableTests {
    private let limit = Gcra(Rate(1, per: .second), burst: 5)

    private func count(_ table: RateTable, _ name: String) -> Int {
        table.numbers.first { $0.name == name }?.value ?? -1
    }

    @Test func `keys are kept apart`() {
        let table = RateTable()
        let now = LoopInstant(nanoseconds: 0)
        for _ in 0..<5 { #expect(table.countRequest(of: 1, limit, at: now) != .refused(for: 1_000_000_000)) }
        #expect(table.countRequest(of: 1, limit, at: now) == .refused(for: 1_000_000_000))
        #expect(table.countRequest(of: 65, limit, at: now) == .granted(left: 4, fullIn: 1_000_000_000))
        #expect(count(table, "httpware_rate_limited_total") == 1)
    }

    @Test func `more keys than there is room for do not make one forgotten that is over its limit`() {
        let table = RateTable()
        let now = LoopInstant(nanoseconds: 0)
        for _ in 0..<5 { _ = table.countRequest(of: 7, limit, at: now) }
        var hasher = UInt64(99)
        for _ in 0..<200_000 {
            hasher = hasher &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            _ = table.countRequest(of: hasher ^ hasher >> 29, limit, at: now)
        }
        #expect(count(table, "httpware_rate_keys_forgotten_total") > 100_000)
        #expect(table.countRequest(of: 7, limit, at: now) == .refused(for: 1_000_000_000))
    }

    @Test func `a key that has its whole burst again gives way without loss`() {
        let table = RateTable()
        for index in 0..<64 as Range<UInt64> {
            _ = table.countRequest(of: index << 13, limit, at: LoopInstant(nanoseconds: 0))
        }
        #expect(count(table, "httpware_rate_keys_forgotten_total") == 56)
        for index in 64..<72 as Range<UInt64> {
            _ = table.countRequest(of: index << 13, limit, at: LoopInstant(nanoseconds: 2_000_000_000))
        }
        #expect(count(table, "httpware_rate_keys_forgotten_total") == 56)
    }

    @Test func `threads that come together let through no more than the limit`() async {
        let table = RateTable()
        let limit = Gcra(Rate(1, per: .hour), burst: 1000)
        let granted = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    (0..<1000).count { _ in
                        if case .granted = table.countRequest(of: 3, limit, at: LoopInstant(nanoseconds: 0)) {
                            true
                        } else {
                            false
                        }
                    }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(granted == 1000)
    }
}
