import Testing

@testable import HttpWare

/// `ContentPath`: filters, pace, cut and promised length of one direction, without a network.
struct ContentPathTests {
    private let now = LoopInstant(nanoseconds: 0)

    private func push(_ text: String, into path: ContentPath) throws {
        try Array(text.utf8).withUnsafeBytes { try path.take($0) }
    }

    /// All that goes on at once, and the first thing that is not a piece.
    private func drain(_ path: ContentPath) -> (text: String, then: String) {
        var text: [UInt8] = []
        while true {
            switch path.next(at: now) {
            case .passOn(let bytes): text += bytes
            case let other: return (String(decoding: text, as: UTF8.self), "\(other)")
            }
        }
    }

    @Test func `without filters, content goes on as it came, and its end is told once`() throws {
        let path = ContentPath([])
        try push("abc", into: path)
        #expect(path.isHolding)
        #expect(drain(path) == ("abc", "isEmpty"))
        #expect(!path.isHolding)
        try path.end()
        #expect(drain(path) == ("", "isOver"))
        #expect(drain(path) == ("", "isEmpty"))
    }

    @Test func `the end of the content follows what the filters release at their end`() throws {
        let path = ContentPath([Holding(), Doubling()])
        try push("ab", into: path)
        #expect(drain(path) == ("", "isEmpty"))
        try path.end()
        #expect(drain(path) == ("aabb", "isOver"))
    }

    @Test func `filters release what they hold back when the content pauses`() throws {
        let path = ContentPath([Holding()])
        try push("ab", into: path)
        #expect(path.holdsBack)
        try path.flush()
        #expect(!path.holdsBack)
        #expect(drain(path) == ("ab", "isEmpty"))
    }

    @Test func `a large piece enters the filters in steps of bounded size`() throws {
        let counting = Counting()
        let path = ContentPath([counting])
        let bytes = [UInt8](repeating: 1, count: 3 * ContentPath.piece + 5)
        try bytes.withUnsafeBytes { try path.take($0) }
        var count = 0
        loop: while true {
            switch path.next(at: now) {
            case .passOn(let piece): count += piece.count
            case .needsStep: try path.step()
            default: break loop
            }
        }
        #expect(count == bytes.count)
        #expect(counting.pieces == [ContentPath.piece, ContentPath.piece, ContentPath.piece, 5])
    }

    @Test func `the end that comes during the steps follows all of the content`() throws {
        let path = ContentPath([Doubling()])
        let bytes = [UInt8](repeating: 0x61, count: ContentPath.piece + 3)
        try bytes.withUnsafeBytes { try path.take($0) }
        try path.end()
        #expect(!path.isFiltered)
        #expect(drain(path).then == "needsStep")
        try path.step()
        #expect(path.isFiltered)
        #expect(drain(path) == ("aaaaaa", "isOver"))
    }

    @Test func `a filter with pending output is asked for more before it gets further input`() throws {
        let path = ContentPath([Dripping()])
        try push("abc", into: path)
        #expect(drain(path) == ("a", "needsStep"))
        try push("d", into: path)
        try path.end()
        var text = ""
        var then = "needsStep"
        while then == "needsStep" {
            try path.step()
            let part = drain(path)
            text += part.text
            then = part.then
        }
        #expect(text == "bcd")
        #expect(then == "isOver")
    }

    @Test func `a pace decides how much goes on, and how long the rest waits`() throws {
        let path = ContentPath([], pace: Metered([(2, .zero), (3, .seconds(1))]))
        try push("abcde", into: path)
        #expect(drain(path).text == "ab")
        #expect(path.isHolding)
        #expect(drain(path) == ("", "isWaiting"))
        path.wake()
        #expect(drain(path) == ("cde", "isEmpty"))
    }

    @Test func `content is cut after the given number of bytes, and nothing goes on afterwards`() throws {
        let path = ContentPath([], cut: 3)
        try push("abcd", into: path)
        #expect(drain(path) == ("abc", "isCut"))
        try push("ef", into: path)
        #expect(drain(path) == ("", "isWaiting"))
    }

    @Test(arguments: [(3, true), (4, false)])
    func `a cut at the end of the content cuts nothing`(stated: Int, isWhole: Bool) throws {
        let path = ContentPath([], cut: 3, stated: stated)
        try push("abc", into: path)
        #expect(drain(path) == ("abc", isWhole ? "isEmpty" : "isCut"))
        guard isWhole else { return }
        try path.end()
        #expect(drain(path).then == "isOver")
    }

    @Test(arguments: [1, 5])
    func `filters that promised to keep the length are held to it`(stated: Int) throws {
        let path = ContentPath([Doubling()], stated: stated, isPromised: true)
        #expect(throws: ContentPath.Fault.changedLength) {
            try push("a", into: path)
            try path.end()
        }
    }

    @Test func `content that went on goes on again before the rest, and is not filtered twice`() throws {
        let path = ContentPath([Doubling()])
        try push("ab", into: path)
        #expect(drain(path).text == "aabb")
        try push("c", into: path)
        path.putBack(Array("aabb".utf8))
        try path.end()
        #expect(drain(path) == ("aabbcc", "isOver"))
        path.putBack(Array("aabbcc".utf8))
        #expect(drain(path) == ("aabbcc", "isOver"))
    }

    @Test func `the fault of a filter reaches the caller`() {
        let path = ContentPath([Failing()])
        #expect(throws: Failing.Fault.self) { try push("a", into: path) }
    }

    @Test func `whole content is collected behind the filters`() throws {
        let path = ContentPath(whole: Array("abc".utf8), [Doubling()])
        #expect(path.taken == 3)
        while !path.isFiltered { try path.step() }
        #expect(path.heldCount == 6)
        #expect(path.takeOutput() == Array("aabbcc".utf8))
    }

    @Test func `pending output comes in steps, and the end after it`() throws {
        let path = ContentPath([Growing(by: 4, step: 3)])
        try push("ab", into: path)
        #expect(drain(path) == ("aaa", "needsStep"))
        try push("c", into: path)
        #expect(drain(path) == ("", "needsStep"))
        try path.end()
        #expect(!path.isFiltered)
        let (text, steps) = try rest(of: path)
        #expect(text == "abbbbcccc!" && steps == 4)
    }

    @Test func `a filter gets more only after those behind it have nothing pending`() throws {
        let last = Growing(by: 10, step: 5)
        let path = ContentPath([Growing(by: 10, step: 4), last])
        try push("ab", into: path)
        let first = drain(path).text
        try path.end()
        let text = first + (try rest(of: path).text)
        #expect(text == String(repeating: "a", count: 100) + String(repeating: "b", count: 100) + "!!!!!!!!!!!")
        #expect(last.most <= 40)
    }

    /// Takes steps until the content ends.
    private func rest(of path: ContentPath) throws -> (text: String, steps: Int) {
        var text = ""
        var steps = 0
        while !path.isFiltered {
            try path.step()
            steps += 1
            text += drain(path).text
        }
        return (text, steps)
    }
}

/// Makes each byte into `count` of them, `step` bytes at a time.
private final class Growing: ContentFilter {
    let (count, step): (Int, Int)
    private(set) var pending: [UInt8] = []
    private(set) var most = 0
    private(set) var steps = 0

    init(by count: Int, step: Int) { (self.count, self.step) = (count, step) }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        for byte in input { pending += repeatElement(byte, count: count) }
        most = max(most, pending.count)
        more(into: &output)
    }
    var isPending: Bool { !pending.isEmpty }
    func more(into output: inout [UInt8]) {
        steps += 1
        output += pending.prefix(step)
        pending.removeFirst(min(step, pending.count))
    }
    func finish(into output: inout [UInt8]) {
        precondition(pending.isEmpty, "told of the end while output is pending")
        output.append(0x21)
    }
}

private final class Doubling: ContentFilter {
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        for byte in input { output += [byte, byte] }
    }
}

private final class Holding: ContentFilter {
    private var held: [UInt8] = []
    var holdsBack: Bool { !held.isEmpty }
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) { held += input }
    func flush(into output: inout [UInt8]) { finish(into: &output) }
    func finish(into output: inout [UInt8]) {
        output += held
        held = []
    }
}

private final class Counting: ContentFilter {
    private(set) var pieces: [Int] = []
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        pieces.append(input.count)
        output += input
    }
}

/// Gives one byte at a time.
private final class Dripping: ContentFilter {
    private var held: [UInt8] = []
    var isPending: Bool { !held.isEmpty }
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        held += input
        more(into: &output)
    }
    func more(into output: inout [UInt8]) { if !held.isEmpty { output.append(held.removeFirst()) } }
}

private final class Failing: ContentFilter {
    struct Fault: Error {}
    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws { throw Fault() }
}

private final class Metered: ContentPace, @unchecked Sendable {
    private var grants: [(Int, Duration)]
    init(_ grants: [(Int, Duration)]) { self.grants = grants }
    func reserve(_ count: Int, at now: LoopInstant) -> (count: Int, wait: Duration) {
        let (most, wait) = grants.removeFirst()
        return (min(count, most), wait)
    }
}
