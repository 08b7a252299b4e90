import HttpWare
import Testing

@testable import Capturing

@Suite struct CaptureStoreTests {
    private func store(_ bytes: Int) -> CaptureStore {
        var settings = CaptureSettings()
        settings.memory = .bytes(bytes)
        return CaptureStore(settings)
    }

    private func capture(_ id: Int, _ size: Int = 1000) -> CapturedExchange {
        var capture = CapturedExchange(
            id: id, started: WallTime(seconds: Int64(id), nanoseconds: 0), method: "GET", url: "http://a.test/\(id)",
            version: "HTTP/1.1", listener: "web", request: CapturedMessage())
        capture.request.content.kept = [UInt8](repeating: 0x61, count: size)
        capture.request.content.size = size
        return capture
    }

    private func ids(_ store: CaptureStore) -> [Int] { store.list(limit: 10_000).captures.map(\.id) }

    @Test func `the oldest go when memory is used up, and it stays within its bound`() {
        let store = store(20_000)
        for id in 1...1000 {
            store.put(capture(id))
            #expect(store.bytes <= 20_000)
        }
        let kept = ids(store)
        #expect(kept.first == 1000)
        #expect(kept == Array((1000 - kept.count + 1)...1000).reversed())
        #expect(kept.count > 5)
    }

    @Test func `a capture that is pinned stays, within the bound`() {
        let store = store(20_000)
        store.put(capture(1))
        #expect(store.pin(1, true))
        for id in 2...100 { store.put(capture(id)) }
        #expect(ids(store).last == 1)
        #expect(store.find(1)?.isPinned == true)
        #expect(store.bytes <= 20_000)
        for id in ids(store) { _ = store.pin(id, true) }
        store.put(capture(101))
        #expect(store.find(101) == nil, "nothing can go")
        #expect(store.pin(1, false))
        store.put(capture(102))
        #expect(store.find(1) == nil)
        #expect(store.find(102) != nil)
    }

    @Test func `captures are listed by number, however they end, and in pages`() {
        let store = store(1 << 20)
        for id in [3, 1, 2, 5, 4, 2] { store.put(capture(id)) }
        #expect(ids(store) == [5, 4, 3, 2, 1])
        let first = store.list(limit: 2)
        #expect(first.captures.map(\.id) == [5, 4] && first.next != nil)
        let second = store.list(before: 4, limit: 3)
        #expect(second.captures.map(\.id) == [3, 2, 1] && second.next == nil)
        #expect(store.list(limit: 10) { $0.id % 2 == 1 }.captures.map(\.id) == [5, 3, 1])
        #expect(store.list(before: 1, limit: 10).captures.isEmpty)
    }

    @Test func `a search that is out of time ends behind one capture, and goes on there`() throws {
        let store = store(8 << 20)
        for id in 1...600 { store.put(capture(id * 2, id % 3)) }
        let filter = try CaptureFilter("~bq a & ~size =2B")
        var (found, pages, before) = ([Int](), 0, Int?.none)
        repeat {
            let page = store.list(before: before, limit: 100, filter: filter, until: .now - .seconds(1))
            if let next = page.next { try #require(next < before ?? .max) }
            found += page.captures.map(\.id)
            (before, pages) = (page.next, pages + 1)
        } while before != nil
        #expect(pages > 500)
        #expect(found == store.list(limit: 1000, filter: filter).captures.map(\.id) && found.count == 200)
    }

    @Test func `notes of a user on a capture outlive its next state`() {
        let store = store(1 << 20)
        store.put(capture(1))
        #expect(store.comment(1, "look here"))
        #expect(store.pin(1, true))
        store.put(capture(1, 5000))
        #expect(store.find(1)?.comment == "look here")
        #expect(store.find(1)?.isPinned == true)
        #expect(!store.comment(2, "none"))
    }

    @Test func `memory for content is taken from the oldest, and refused when there is none`() {
        let store = store(20_000)
        for id in 1...10 { store.put(capture(id)) }
        #expect(store.reserve(15_000))
        #expect(store.count < 4)
        #expect(!store.reserve(10_000))
        store.giveBack(15_000)
        #expect(store.reserve(10_000))
        #expect(store.bytes <= 20_000)
    }

    @Test func `clearing leaves what is pinned`() {
        let store = store(1 << 20)
        for id in 1...4 { store.put(capture(id)) }
        _ = store.pin(2, true)
        #expect(store.clear() == 3)
        #expect(ids(store) == [2])
        for id in 5...6 { store.put(capture(id)) }
        #expect(ids(store) == [6, 5, 2])
    }

    @Test func `a watcher is notified about each change once, and about the number of changes that it missed`() {
        let store = store(1 << 30)
        let watcher = CaptureWatcher {}
        store.watch(watcher)
        for id in [1, 1, 2, 1] { store.put(capture(id)) }
        #expect(watcher.takeChanges().ids == [1, 2])
        for id in 1...5000 { store.put(capture(id, 1)) }
        let (ids, dropped, _) = watcher.takeChanges()
        #expect(ids.count == 4096 && dropped == 904)
        store.unwatch(watcher)
        store.put(capture(1))
        #expect(watcher.takeChanges().ids.isEmpty)
    }
}

extension CaptureStoreTests {
    @Test func `a capture that pinned ones leave no room for is counted, and watchers are told`() {
        let store = store(20_000)
        let watcher = CaptureWatcher {}
        store.watch(watcher)
        var id = 0
        while store.bytes + 1500 < 20_000 {
            id += 1
            store.put(capture(id))
            _ = store.pin(id, true)
        }
        _ = watcher.takeChanges()
        var large = capture(id + 1, 4000)
        store.put(large)
        #expect(store.lost == 0, "it has not ended")
        large.isOpen = false
        store.put(large)
        #expect(store.lost == 1 && store.find(id + 1) == nil)
        #expect(watcher.takeChanges() == ([], 0, 1) && watcher.takeChanges() == ([], 0, 0))
    }

    @Test func `a pin is not an end, however many exchanges ended since`() {
        let store = store(1 << 30)
        let watcher = CaptureWatcher(endsOnly: true) {}
        store.watch(watcher)
        var first = capture(1, 1)
        store.put(first)
        #expect(watcher.takeChanges().ids.isEmpty)
        first.isOpen = false
        store.put(first)
        #expect(watcher.takeChanges().ids == [1])
        for id in 2...6000 {
            var capture = capture(id, 1)
            capture.isOpen = false
            store.put(capture)
            if id % 1000 == 0 { _ = watcher.takeChanges() }
        }
        _ = watcher.takeChanges()
        _ = store.pin(1, true)
        _ = store.comment(2, "x")
        #expect(watcher.takeChanges().ids.isEmpty)
    }

    @Test func `imported exchanges are numbered and exported in the order of their starts`() {
        let store = store(1 << 20)
        let numbers = store.take(
            [Int64(30), 10, 20, 10].enumerated().map { place, seconds in
                var exchange = CapturedExchange(
                    id: 1, started: WallTime(seconds: seconds), method: "GET", url: "http://a.test/\(place)",
                    version: "HTTP/1.1",
                    listener: "har", request: CapturedMessage())
                exchange.isOpen = false
                return exchange
            })
        #expect(numbers.compactMap { store.find($0)?.url.last } == ["1", "3", "2", "0"])
        let later = store.take([
            {
                var exchange = CapturedExchange(
                    id: 1, started: WallTime(seconds: 15), method: "GET", url: "http://a.test/l", version: "HTTP/1.1",
                    listener: "har", request: CapturedMessage())
                exchange.isOpen = false
                return exchange
            }()
        ])
        #expect(store.idsByStart(filter: nil) == Array(numbers[..<2]) + later + Array(numbers[2...]))
    }

    @Test func `exchanges of an archive are masked, and what was masked counts for the bound`() throws {
        let store = store(1 << 20)
        var exchange = capture(7, 10)
        exchange.url = "http://a.test/?token=abc"
        exchange.request.fields = [.init("Authorization", "Bearer abc"), .init("Accept", "abc")]
        var response = CapturedMessage(fields: [.init("Set-Cookie", "abc")])
        response.content.size = 0
        exchange.response = response
        let id = try #require(store.take([exchange]).first)
        let kept = try #require(store.find(id))
        #expect(kept.url == "http://a.test/?token=…" && kept.response?.fields[0].value == "…")
        #expect(kept.request.fields == [.init("Authorization", "Bearer …"), .init("Accept", "abc")])
        #expect(kept.restored.exchange.request.fields[0].value == "Bearer abc")
        #expect(kept.restored.exchange.response?.fields[0].value == "abc")
        #expect(kept.revealed.request.fields[0].value == "Bearer abc")
        var bare = kept
        bare.secrets = nil
        #expect(kept.memory > bare.memory + 100)
    }
}
