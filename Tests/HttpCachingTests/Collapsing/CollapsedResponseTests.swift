import HttpWareTesting
import Testing

@testable import HttpCaching
@testable import HttpWare

/// The order in which a leader's client leaves, the response begins, and followers get their turn. Nothing here waits: each test
/// does the steps in the order that it is about.
@Suite struct CollapsedResponseTests {
    private let loop: EventLoop
    private let requests = CollapsedRequests(mostFollowers: 100, window: 1000)
    private let key = CacheKey(Array("http://a.test/".utf8))

    init() throws { loop = try EventLoop(name: "collapsed", clock: ManualClock()) }

    private func join() -> CollapsedRequests.Role { requests.join(key, Exchange(loop: loop), waiting: .seconds(5)) }

    private func lead() throws -> CollapsedLead {
        guard case .lead = join() else { throw GatewayError(.gateway, .internalError, "there is a leader already") }
        return CollapsedLead(requests, key)
    }

    private func follow() throws -> CollapsedResponse.Follower {
        guard case .follow(let follower) = join() else {
            throw GatewayError(.gateway, .internalError, "the request does not follow")
        }
        return follower
    }

    private func head(_ length: Int?, vary: VaryKey = .none) -> CollapsedResponse.Head {
        var response = HttpResponse(.ok)
        response.content = .streamed(length: length)
        return CollapsedResponse.Head(response, vary: vary, isFailure: false)
    }

    private func begins(_ follower: CollapsedResponse.Follower) -> CollapsedResponse.Head? {
        if case .begins(let head) = follower.leave() { head } else { nil }
    }

    @Test func `the leader goes on for a follower whose turn has not come yet`() throws {
        let lead = try lead()
        let follower = try follow()
        #expect(lead.outlivesClient)
        // The leader's client has left. The head arrives; the follower's loop has not had its turn.
        lead.beginResponse(head(300))
        #expect(lead.outlivesClient)
        lead.append([UInt8](repeating: 1, count: 100))
        #expect(lead.outlivesClient)
        let head = try #require(begins(follower))
        #expect(lead.outlivesClient)
        #expect(follower.take(head, for: [:])?.content.length == 300)
        #expect(lead.outlivesClient)
    }

    @Test func `the leader goes on for a follower that joins after the head`() throws {
        let lead = try lead()
        let first = try follow()
        lead.beginResponse(head(300))
        let late = try follow()
        first.givenUp()
        #expect(lead.outlivesClient)
        let head = try #require(begins(late))
        #expect(late.take(head, for: [:]) != nil)
        #expect(lead.outlivesClient)
    }

    @Test func `the leader ends with its client if every follower has left, before or after the head`() throws {
        let lead = try lead()
        let first = try follow()
        let second = try follow()
        first.givenUp()
        #expect(lead.outlivesClient)
        lead.beginResponse(head(300))
        #expect(lead.outlivesClient)
        second.givenUp()
        #expect(!lead.outlivesClient)
    }

    @Test func `a follower whose request the response does not match holds the leader no longer`() throws {
        let lead = try lead()
        let follower = try follow()
        let vary = try #require(VaryKey(["Vary": "Accept"], of: ["Accept": "a/b"]))
        lead.beginResponse(head(300, vary: vary))
        #expect(lead.outlivesClient)
        let head = try #require(begins(follower))
        #expect(follower.take(head, for: ["Accept": "c/d"]) == nil)
        #expect(!lead.outlivesClient)
    }

    @Test func `a follower whose time is up after the head holds the leader until it takes the response`() throws {
        let lead = try lead()
        let follower = try follow()
        lead.beginResponse(head(nil))
        follower.timedOut()
        #expect(lead.outlivesClient)
        let head = try #require(begins(follower))
        #expect(follower.take(head, for: [:]) != nil)
    }

    @Test func `content that came whole is given to followers without a reader`() throws {
        _ = try lead()
        let followers = try (0..<3).map { _ in try follow() }
        requests.close(key)?.endContent(head(3), [[1], [2, 3]])
        for follower in followers {
            let head = try #require(begins(follower))
            #expect(follower.take(head, for: [:])?.content.bytes == [1, 2, 3])
        }
    }

    @Test func `the leader ends with its client only when every follower is further behind than the window`() throws {
        let lead = try lead()
        let follower = try follow()
        lead.beginResponse(head(nil))
        let head = try #require(begins(follower))
        let content = try #require(follower.take(head, for: [:])?.source)
        // The follower takes each piece: it keeps pace, however much is kept for later followers.
        for number in 0..<20 {
            content.next(ContentFeed(loop: loop))
            lead.append([UInt8](repeating: UInt8(number), count: 100))
            #expect(lead.outlivesClient)
        }
        // It takes no more.
        for _ in 0..<9 {
            lead.append([UInt8](repeating: 1, count: 100))
            #expect(lead.outlivesClient)
        }
        lead.append([UInt8](repeating: 1, count: 100))
        #expect(!lead.outlivesClient)
    }
}
