import Glibc
import HttpWareTesting

@testable import DiskCaching
@testable import HttpCaching
@testable import HttpWare

/// A disk store under load, for `stores.py`: it writes until it is killed, and looks whether what is there then is whole.
@main struct StoreTrial {
    private let store: DiskStore
    private let loop: EventLoop

    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count >= 2, let command = arguments.first else { return usage() }
        let rest = Array(arguments.dropFirst())
        if command == "verify-store" { exit(DiskFolder.isIntact(rest[0]) ? 0 : 1) }
        guard rest.count == 3, let limit = try? ByteCount(optionText: rest[1]), let number = Int(rest[2]) else {
            return usage()
        }
        let began = ContinuousClock.now
        let trial = StoreTrial(
            store: DiskStore(path: rest[0], limit: limit, verifier: DiskFolder.ownProgram),
            loop: try EventLoop.start(name: "trial"))
        do {
            try eventuallyBlocking(every: .milliseconds(1)) { trial.store.isReady }
        } catch {
            return say("never open")
        }
        say("open after \(milliseconds(since: began)) ms with \(trial.store.census.responses) responses")
        switch command {
        case "write": trial.write(seed: number)
        case "fill": trial.fill(number)
        case "check": await trial.check(number)
        case "large": await trial.large(number)
        default: usage()
        }
    }

    private static func usage() {
        say("usage: StoreTrial write|fill|check|large FOLDER LIMIT NUMBER, StoreTrial verify-store FOLDER")
        exit(64)
    }

    private static func milliseconds(since start: ContinuousClock.Instant) -> Int {
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        return Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
    }

    /// Not by way of a buffer: the reader may end the process.
    private static func say(_ text: String) {
        let line = text + "\n"
        _ = Glibc.write(STDOUT_FILENO, line, line.utf8.count)
    }

    // MARK: What is stored

    private static func key(_ number: Int) -> CacheKey { CacheKey(Array("http://a.com/\(number)".utf8)) }

    /// Bytes that say by themselves which they are.
    private static func content(_ number: Int, _ version: Int, _ count: Int) -> [UInt8] {
        var state = UInt64(truncatingIfNeeded: number &* 1_000_003 &+ version)
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
    }

    private static func head(_ number: Int, _ version: Int) -> StoredHead {
        var fields = HttpFields()
        fields.set("X-Number", to: number)
        fields.set("X-Version", to: version)
        let time = WallTime(seconds: 1_795_262_400)
        return StoredHead(
            status: .ok, fields: fields, times: MessageTimes(requested: time, received: time, date: time, age: 0),
            directives: ResponseDirectives(["max-age=600"]), lifetime: FreshnessLifetime(seconds: 600, source: .maxAge),
            vary: .none, mode: .shared)
    }

    private func put(_ number: Int, _ version: Int, _ count: Int) {
        guard let writer = store.write(under: StoreTrial.key(number), length: count) else { return }
        let content = StoreTrial.content(number, version, count)
        for start in stride(from: 0, to: count, by: 40_000) {
            guard writer.append(Array(content[start..<min(count, start + 40_000)])) else { return }
        }
        writer.finish(StoreTrial.head(number, version))
    }

    // MARK: Commands

    /// Stores, replaces and takes away at random, for at most a minute: the caller ends it before.
    private func write(seed: Int) {
        var random = UInt64(truncatingIfNeeded: seed) &* 0x9e37_79b9_7f4a_7c15 | 1
        func next(_ bound: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1
            return Int(random >> 33) % bound
        }
        let began = ContinuousClock.now
        var version = seed * 1_000_000
        while ContinuousClock.now - began < .seconds(60) {
            version += 1
            let number = next(2000)
            switch next(20) {
            case 0: store.invalidate(StoreTrial.key(number))
            case 1: put(number, version, next(1_000_000))
            default: put(number, version, next(8000))
            }
        }
    }

    /// Stores this number of responses of 1 KiB, and closes.
    private func fill(_ count: Int) {
        for number in 0..<count {
            put(number, 1, 1024)
            if number % 10_000 == 0 { store.settle(patience: .seconds(60)) }
        }
        store.settle(patience: .seconds(60))
        StoreTrial.say("stored \(store.census.responses)")
        store.close()
    }

    /// Reads all there is under this number of keys.
    private func check(_ keys: Int) async {
        let began = ContinuousClock.now
        var whole = 0
        var wrong = 0
        var first: Int?
        for number in 0..<keys {
            for response in await Task(
                executorPreference: loop, operation: { await store.load(StoreTrial.key(number)) }
            ).value {
                let version = response.fields["X-Version"].flatMap { Int($0) } ?? 0
                let content = await read(response)
                if content == StoreTrial.content(number, version, response.content.count),
                    response.fields["X-Number"] == "\(number)"
                {
                    whole += 1
                } else {
                    wrong += 1
                }
                if first == nil { first = StoreTrial.milliseconds(since: began) }
            }
        }
        StoreTrial.say(
            "read \(whole) whole, \(wrong) wrong, of \(store.census.responses), the first after \(first ?? 0) ms")
    }

    /// Stores one of this number of MiB, at the pace of the disk, and reads it.
    private func large(_ mebibytes: Int) async {
        guard let writer = store.write(under: StoreTrial.key(0), length: mebibytes << 20) else {
            return StoreTrial.say("no room")
        }
        let piece = StoreTrial.content(1, 1, 1 << 18)
        for number in 0..<(mebibytes * 4) {
            guard writer.append(piece) else { return StoreTrial.say("given up") }
            if number % 64 == 0 { store.settle(patience: .seconds(60)) }
        }
        writer.finish(StoreTrial.head(0, 1))
        store.settle(patience: .seconds(60))
        let responses = await Task(executorPreference: loop) { await store.load(StoreTrial.key(0)) }.value
        guard let response = responses.first, case .elsewhere(let reader) = response.content else {
            return StoreTrial.say("not stored")
        }
        var count = 0
        await pieces(reader.source(of: 0..<reader.count)) { count += $0.count }
        StoreTrial.say("read \(count) bytes of \(mebibytes << 20)")
    }

    private func read(_ response: StoredResponse) async -> [UInt8]? {
        guard case .elsewhere(let reader) = response.content else { return nil }
        var all: [UInt8] = []
        let isWhole = await pieces(reader.source(of: 0..<reader.count)) { all += $0 }
        return isWhole ? all : nil
    }

    /// Takes the content as a client does; answers whether it came to its end.
    @discardableResult
    private func pieces(_ source: any ContentSource, _ body: ([UInt8]) -> Void) async -> Bool {
        while true {
            let piece = await Task(executorPreference: loop) { [loop] in
                let wait = LoopWait<ContentFeed.Piece>()
                let feed = ContentFeed(loop: loop)
                feed.take = { wait.resume(returning: $0) }
                source.next(feed)
                return try? await wait.value()
            }.value
            switch piece {
            case .bytes(let bytes): body(bytes)
            case .end: return true
            case .failed, nil: return false
            }
        }
    }
}
