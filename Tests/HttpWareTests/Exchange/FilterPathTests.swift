import Testing

@testable import HttpWare

@Suite struct FilterPathTests {
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

    private func push(_ text: String, _ path: FilterPath) throws -> String {
        String(decoding: try Array(text.utf8).withUnsafeBytes { try path.push($0) }, as: UTF8.self)
    }

    private func rest(of path: FilterPath, steps: inout Int) throws -> String {
        var output: [UInt8] = []
        while path.isPending {
            output += try path.step()
            steps += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    @Test func `pending output comes in steps, and the end after it`() throws {
        let path = FilterPath([Growing(by: 4, step: 3)])
        var output = try push("ab", path)
        #expect(output == "aaa" && path.isPending)
        output += try push("c", path)
        #expect(output == "aaa")
        path.end()
        #expect(!path.isDone)
        var steps = 0
        output += try rest(of: path, steps: &steps)
        #expect(output == "aaaabbbbcccc!" && path.isDone)
        #expect(steps == 4)
    }

    @Test func `a filter gets more only after those behind it have nothing pending`() throws {
        let last = Growing(by: 10, step: 5)
        let path = FilterPath([Growing(by: 10, step: 4), last])
        var output = try push("ab", path)
        path.end()
        var steps = 0
        output += try rest(of: path, steps: &steps)
        #expect(output == String(repeating: "a", count: 100) + String(repeating: "b", count: 100) + "!!!!!!!!!!!")
        #expect(last.most <= 40)
    }

    @Test func `long input enters the filters in pieces`() throws {
        let path = FilterPath([Brackets()])
        let text = String(repeating: "a", count: FilterPath.piece)
        #expect(try push(text + text + "b", path) == "[\(text)]")
        #expect(try path.step().count == FilterPath.piece + 2)
        path.end()
        #expect(String(decoding: try path.step(), as: UTF8.self) == "[b]!")
        #expect(path.isDone)
    }

    @Test func `without filters everything passes at once`() throws {
        let path = FilterPath([])
        #expect(try push(String(repeating: "a", count: 100_000), path).utf8.count == 100_000)
        path.end()
        #expect(path.isDone)
    }

    @Test(arguments: [
        (GatewayError(.upstream, .responseIncomplete, "x") as any Error, GatewayError.Fault.responseIncomplete),
        (ContentDecoder.Fault(description: "x"), .responseMalformed), (Trouble(), .wareFailed),
    ])
    func `a response's filter fails with one error, whatever the way of the content`(
        error: any Error, fault: GatewayError.Fault
    ) {
        let failure = GatewayError.ofResponseFilter(error)
        #expect(failure.side == .upstream && failure.fault == fault)
        #expect(failure.status == .badGateway)
    }

    @Test(arguments: [
        (GatewayError(.downstream, .contentTooLarge, "x") as any Error, HttpStatus.contentTooLarge),
        (ContentDecoder.Fault(description: "x"), .badRequest), (Trouble(), .internalServerError),
    ])
    func `a request's filter keeps its own error`(error: any Error, status: HttpStatus) {
        #expect(GatewayError.ofRequestFilter(error).status == status)
    }
}
