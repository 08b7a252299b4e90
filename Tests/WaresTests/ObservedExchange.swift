import HttpWareTesting

@testable import HttpWare

/// Exchanges that are observed, so that wares say what they do.
extension TestExchange {
    convenience init(
        observing wares: [any Ware], peer: String = "203.0.113.7:50000", clock: ManualClock = ManualClock(),
        route: String = "test"
    ) throws {
        var setting = Setting()
        setting.records = RecordRing(mostRecords: 100, mostBytes: .mebibytes(1))
        setting.peer = SocketAddress(peer)
        setting.clock = clock
        setting.route = route
        try self.init(wares, setting: setting)
    }

    /// The notes of the wares in the exchange that ended last.
    var notes: [String] { outcomes.last?.record.wares.compactMap(\.note) ?? [] }

    /// Moves the clock by steps until the origin server was asked so often.
    func advanceUntilAsked(_ count: Int, by step: Duration = .milliseconds(50)) async {
        while upstream.requests.count < count { await advance(by: step) }
    }

    /// Waits until the origin server was asked so often.
    func untilAsked(_ count: Int) async { while upstream.requests.count < count { await Task.yield() } }
}
