@testable import HttpWare
import Testing

@Suite struct PinnedHostsTests {
    private let pinned = PinnedHosts()
    private let second: Int64 = 1_000_000_000

    private func key(
        _ host: String = "a.test", client: String = "127.0.0.1", principal: String? = nil, program: UInt64 = 1
    ) -> PinnedHosts.Key {
        PinnedHosts.Key(client: IPAddress(client), principal: principal, program: program, host: host)
    }

    /// Refuses twice.
    private func pin(_ key: PinnedHosts.Key, at now: Int64 = 1) {
        for time in now...now + 1 { _ = pinned.refused(key, at: time, for: 600 * second) }
    }

    @Test func `a host that a program refuses twice within a minute passes unread for a while`() {
        #expect(pinned.refused(key(), at: 1, for: 600 * second) == .counted)
        #expect(!pinned.passes(key(), at: 2))
        #expect(pinned.refused(key(), at: 100 * second, for: 600 * second) == .counted, "too long after the first")
        #expect(pinned.refused(key(), at: 130 * second, for: 600 * second) == .passes)
        #expect(pinned.passes(key(), at: 131 * second))
        #expect(!pinned.passes(key(), at: 731 * second))
    }

    @Test func `a duration of zero lets nothing pass`() {
        for time in Int64(1)...4 { #expect(pinned.refused(key(), at: time, for: 0) == .counted) }
        #expect(!pinned.passes(key(), at: 5))
    }

    @Test func `a program's refusals let no other program, principal, client or host pass`() {
        pin(key())
        #expect(pinned.passes(key(), at: 3))
        for other in [
            key(program: 2), key(principal: "anna"), key(client: "192.0.2.1"), key("b.test"), key("x.a.test"),
        ] {
            #expect(!pinned.passes(other, at: 3))
        }
        // Refusals of two programs do not add up.
        #expect(pinned.refused(key("c.test"), at: 4, for: 600 * second) == .counted)
        #expect(pinned.refused(key("c.test", program: 2), at: 5, for: 600 * second) == .counted)
    }

    @Test
    func `a host whose certificate was accepted from the same address stays read, even if a client refuses it later`() {
        pinned.accepted(key())
        for program in UInt64(1)...2 {
            for principal in [nil, "anna"] {
                for time in Int64(1)...5 {
                    let refusal = pinned.refused(
                        key(principal: principal, program: program), at: time, for: 600 * second)
                    #expect(refusal == .acceptedBefore)
                }
            }
        }
        #expect(!pinned.passes(key(), at: 6))
        pin(key(client: "192.0.2.1"))
        #expect(pinned.passes(key(client: "192.0.2.1"), at: 6))
    }

    @Test func `hosts that pass are shown with their end and their tunnels, and are read again on request`() {
        pin(key("a.test"))
        pin(key("b.test", principal: "anna"), at: 3)
        _ = pinned.passes(key("a.test"), at: 5)
        _ = pinned.passes(key("a.test"), at: 5)
        let shown = pinned.passing(at: 6)
        #expect(shown.map(\.host) == ["a.test", "b.test"])
        #expect(shown.map(\.tunnels) == [2, 0])
        #expect(shown.map(\.principal) == [nil, "anna"])
        #expect(shown.first?.remaining == 600 * second - 4)
        #expect(pinned.readAgain(shown.first?.id, at: 7) == 1)
        #expect(pinned.readAgain(shown.first?.id, at: 7) == 0)
        #expect(!pinned.passes(key("a.test"), at: 8))
        #expect(pinned.refused(key("a.test"), at: 9, for: 600 * second) == .counted, "it takes two refusals again")
        #expect(pinned.readAgain(nil, at: 10) == 1)
        #expect(pinned.passing(at: 11).isEmpty)
        pin(key("c.test"), at: 12)
        #expect(pinned.passing(at: 14).map(\.host) == ["c.test"])
        #expect(pinned.passing(at: 700 * second).isEmpty)
    }

    @Test func `beyond the maximum number of entries, the oldest client is forgotten, and no other`() {
        func numbered(_ number: Int) -> PinnedHosts.Key { key("\(number).test") }
        for number in 0..<PinnedHosts.most { pin(numbered(number)) }
        #expect(pinned.passes(numbered(0), at: 3))
        for more in 1...3 {
            pin(numbered(PinnedHosts.most + more))
            #expect(!pinned.passes(numbered(more - 1), at: 3))
            #expect(pinned.passes(numbered(more), at: 3) && pinned.passes(numbered(PinnedHosts.most + more), at: 3))
        }
        for number in 0..<2 * PinnedHosts.most + 10 { pin(numbered(100_000 + number)) }
        #expect(!pinned.passes(numbered(5), at: 3) && pinned.passes(numbered(100_000 + PinnedHosts.most + 10), at: 3))
        #expect(!pinned.passes(numbered(100_000 + PinnedHosts.most + 9), at: 3))
    }
}
