import HttpCaching
import HttpWare
import Testing

@Suite struct CacheStatusTests {
    private func text(_ status: CacheStatus) -> String? {
        var fields = HttpFields()
        status.append(to: &fields)
        return fields[.cacheStatus]
    }

    @Test func `a hit says how long it stays fresh, RFC 9211 §2`() {
        var status = CacheStatus()
        status.isHit = true
        status.ttl = 30
        #expect(text(status) == "httpware; hit; ttl=30")
    }

    @Test func `a miss says why it went on, and what became of it, RFC 9211 §2.2 to §2.8`() {
        var status = CacheStatus()
        status.forward = .stale
        status.forwardStatus = 304
        status.ttl = -5
        status.isStored = true
        status.isCollapsed = true
        status.detail = "no-store"
        #expect(text(status) == "httpware; fwd=stale; fwd-status=304; ttl=-5; stored; collapsed; detail=no-store")
    }
}
