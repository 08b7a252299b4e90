import HttpWareTesting
import Synchronization
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

    private func content(of follower: CollapsedResponse.Follower) throws -> any ContentSource {
        let head = try #require(begins(follower))
        return try #require(follower.take(head, for: [:])?.source)
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

    @Test func `without its client, the leader waits when every follower is further behind than the window`() throws {
        let lead = try lead()
        let follower = try follow()
        lead.beginResponse(head(nil))
        let head = try #require(begins(follower))
        let content = try #require(follower.take(head, for: [:])?.source)
        // The follower takes each piece: it keeps pace, however much is kept for later followers.
        for number in 0..<20 {
            content.next(ContentFeed(loop: loop))
            lead.append([UInt8](repeating: UInt8(number), count: 100))
            #expect(lead.outlivesClient && lead.keepsPace)
        }
        // It takes no more.
        for _ in 0..<9 {
            lead.append([UInt8](repeating: 1, count: 100))
            #expect(lead.outlivesClient && lead.keepsPace)
        }
        lead.append([UInt8](repeating: 1, count: 100))
        #expect(lead.outlivesClient && !lead.keepsPace)
    }

    @Test func `a follower that is behind gets the whole response, however late it reads`() async throws {
        let running = try EventLoop.start(name: "collapsed.behind", clock: ManualClock())
        defer {
            running.stop()
            running.join()
        }
        let lead = try lead()
        let (fast, slow) = (try follow(), try follow())
        lead.beginResponse(head(nil))
        let reader = try content(of: fast)
        let behind = try content(of: slow)
        let wakes = Mutex(0)
        var sent = 0
        func append() {
            lead.append([UInt8](repeating: UInt8(truncatingIfNeeded: sent), count: 300))
            sent += 1
        }
        let received = Mutex<[UInt8]>([])
        let isWhole = Mutex<Bool?>(nil)
        func read(_ source: any ContentSource) async {
            await withCheckedContinuation { continuation in
                running.execute {
                    let feed = ContentFeed(loop: running)
                    feed.take = { piece in
                        switch piece {
                        case .bytes(let bytes): received.withLock { $0 += bytes }
                        case .end: isWhole.withLock { $0 = true }
                        case .failed: isWhole.withLock { $0 = false }
                        }
                        continuation.resume()
                    }
                    source.next(feed)
                }
            }
        }
        for _ in 0..<50 {
            // The origin server is fast: the leader pauses, but pieces that are on their way still come.
            while lead.keepsPace { append() }
            let former = wakes.withLock { $0 }
            lead.whenPaceKept(isAlone: true) { wakes.withLock { $0 += 1 } }
            for _ in 0..<5 { append() }
            while wakes.withLock({ $0 }) == former { await read(reader) }
        }
        lead.finish(isWhole: true)
        while isWhole.withLock({ $0 }) == nil { await read(reader) }
        let all = (0..<sent).flatMap { [UInt8](repeating: UInt8(truncatingIfNeeded: $0), count: 300) }
        #expect(isWhole.withLock { $0 } == true && received.withLock { $0 } == all)
        // The slower one was cut off.
        isWhole.withLock { $0 = nil }
        await read(behind)
        #expect(isWhole.withLock { $0 } == false)
    }

    @Test func `a follower that was cut off holds the leader no longer`() throws {
        let lead = try lead()
        let (stalled, late) = (try follow(), try follow())
        lead.beginResponse(head(nil))
        let content = try content(of: stalled)
        for _ in 0..<30 { lead.append([UInt8](repeating: 1, count: 100)) }
        let wakes = Mutex(0)
        lead.whenPaceKept(isAlone: true) { wakes.withLock { $0 += 1 } }
        content.next(ContentFeed(loop: loop))
        #expect(lead.outlivesClient && wakes.withLock { $0 } == 0)
        // Its beginning is gone, so the other one goes alone: nothing needs the response any more.
        let head = try #require(begins(late))
        #expect(late.take(head, for: [:]) == nil)
        #expect(!lead.outlivesClient && wakes.withLock { $0 } == 1)
    }

    @Test func `a leader whose client takes the content waits for no follower`() throws {
        let lead = try lead()
        let follower = try follow()
        lead.beginResponse(head(nil))
        let content = try content(of: follower)
        for _ in 0..<12 { lead.append([UInt8](repeating: 1, count: 100)) }
        lead.whenPaceKept(isAlone: false) {}
        // The client was the first to take more: the follower that lags is cut off, as without the wait.
        for _ in 0..<30 { lead.append([UInt8](repeating: 1, count: 100)) }
        content.next(ContentFeed(loop: loop))
        #expect(!lead.outlivesClient)
    }

    @Test func `a leader that waits is told when the last follower leaves`() throws {
        let lead = try lead()
        let follower = try follow()
        lead.beginResponse(head(nil))
        let content = try content(of: follower)
        for _ in 0..<12 { lead.append([UInt8](repeating: 1, count: 100)) }
        let isTold = Mutex(false)
        lead.whenPaceKept(isAlone: true) { isTold.withLock { $0 = true } }
        #expect(!isTold.withLock { $0 })
        content.cancelled()
        #expect(isTold.withLock { $0 } && !lead.outlivesClient)
    }
}
