import HttpWareTesting
import Testing

@testable import HttpWare

/// Bombs in each place of the data path that decodes: each turn of the loop decodes a bounded number of bytes, and memory is bounded
/// by decoded bytes, not by coded ones.
@Suite struct DecodingTurnsTests {
    private let notes = Notes()
    private let placeholder = TokenPlaceholder(bytes: Array("hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV".utf8))
    /// The most bytes that leave the filters in one turn.
    private let mostAtOnce = 256 << 10

    /// Decodes as the client does, or as `scrub` does.
    private func adding(_ make: @escaping @Sendable () -> (any ContentFilter)?) -> OnResponse {
        OnResponse { response, exchange in
            if let filter = make() { exchange.filterResponseContent(with: filter) }
            return .pass
        }
    }

    private func scrubbing(_ coding: String) -> OnResponse {
        adding { [placeholder] in
            guard let search = TokenSearch(Secret("ghp_secret")) else { return nil }
            return ScrubbedContent([search], placeholder: placeholder, codings: [coding]) {}
        }
    }

    /// Lets the loop take its turns until that is so, or for very many turns. The test reads the result afterwards.
    private func turns(_ stage: DriverStage, most: Int = 2000, until isDone: @escaping @Sendable (DriverStage) -> Bool)
        async
    {
        for _ in 0..<most {
            if await stage.step({ isDone($0) }) { return }
        }
    }

    // MARK: Responses

    @Test(arguments: Bomb.codings)
    func `a response that is a bomb takes a turn of the loop for each step`(coding: String) async throws {
        let bomb = try Bomb.make([coding], of: "ghp_", count: 1 << 20)
        let stage = try DriverStage([], after: [scrubbing(coding)])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .length(bomb.count))
            stage.stream.send(bomb)
            stage.stream.end()
            #expect(stage.client.content.count <= mostAtOnce)
            #expect(stage.client.ends == 0)
        }
        await turns(stage) { $0.client.ends == 1 }
        await stage.step { #expect($0.client.content.count == 1 << 20) }
    }

    @Test(arguments: Bomb.codings)
    func `nothing more is decoded, or read, for a client that does not read`(coding: String) async throws {
        let bomb = try Bomb.make([coding], of: "ghp_", count: 1 << 20)
        let stage = try DriverStage([], after: [scrubbing(coding)])
        await stage.begin()
        await stage.step { stage in
            stage.client.isBlocked = true
            stage.stream.respond(extent: .unknown)
            stage.stream.send(bomb)
            stage.stream.send("more")
            #expect(stage.stream.isPaused)
        }
        for _ in 0..<20 { await stage.advance(by: .milliseconds(1)) }
        #expect(await stage.step { $0.client.content.count } <= mostAtOnce)
        let second = await stage.step { stage in
            stage.client.isBlocked = false
            stage.driver.downstreamDrained()
            stage.client.isBlocked = true
            stage.driver.clientLeft()
            return stage.client.content.count
        }
        await stage.advance(by: .milliseconds(1))
        #expect(await stage.step { $0.client.content.count } == second)
    }

    @Test func `the origin server may send more when the filters have given everything`() async throws {
        let bomb = try Bomb.make(["gzip"], count: 300_000)
        let stage = try DriverStage([], after: [scrubbing("gzip")])
        await stage.begin()
        let halves = [Array(bomb.prefix(bomb.count / 2)), Array(bomb.dropFirst(bomb.count / 2))]
        await stage.step { stage in
            stage.stream.respond(extent: .length(bomb.count))
            for half in halves { stage.stream.send(half) }
            stage.stream.end()
        }
        await turns(stage) { $0.client.ends == 1 }
        #expect(await stage.step { $0.client.content.count } == 300_000)
    }

    @Test(arguments: [HttpContent.Extent.length(0), .unknown])
    func `a coded response that ends too early is cut off`(extent: HttpContent.Extent) async throws {
        let bomb = try Bomb.make(["gzip"], of: "abcdefg", count: 400_000)
        let stage = try DriverStage([], after: [scrubbing("gzip")])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: extent == .unknown ? .unknown : .length(bomb.count - 10))
            stage.stream.send(Array(bomb.dropLast(10)))
            stage.stream.end()
        }
        await turns(stage) { $0.client.ends + $0.client.cuts == 1 }
        await stage.step { stage in
            #expect(stage.client.cuts == 1)
            #expect(stage.driver.exchange.failure?.fault == .responseMalformed)
            #expect(stage.driver.exchange.failure?.side == .upstream)
        }
    }

    @Test(arguments: Bomb.codings)
    func `a bomb that is held whole is decoded in turns, and streams when it is long`(coding: String) async throws {
        let count = 6 << 20
        let bomb = try Bomb.make(coding == "gzip" || coding == "deflate" ? [coding] : ["gzip"], count: count)
        let coding = coding == "deflate" ? "deflate" : "gzip"
        let whole = OnResponse(.whole(upTo: 1 << 20)) { _, _ in .pass }
        let stage = try DriverStage([], after: [whole, scrubbing(coding)])
        await stage.begin()
        await stage.step { stage in
            stage.client.isBlocked = true
            stage.stream.respond(extent: .length(bomb.count))
            stage.stream.send(bomb)
            stage.stream.end()
            #expect(stage.client.status == nil)
        }
        await turns(stage) { $0.client.status != nil }
        await stage.step { stage in
            #expect(stage.client.extent == .unknown)
            #expect(stage.client.content.count < 5 << 20)
        }
        await stage.advance(by: .milliseconds(1))
        let held = await stage.step { $0.client.content.count }
        for _ in 0..<5 { await stage.advance(by: .milliseconds(1)) }
        #expect(await stage.step { $0.client.content.count } == held)
        await stage.step { stage in
            stage.client.isBlocked = false
            stage.driver.downstreamDrained()
        }
        await turns(stage) { $0.client.ends == 1 }
        #expect(await stage.step { $0.client.content.count } == count)
    }

    /// Decodes before later wares see the content, as the client's own filter does.
    private final class First: ContentFilter {
        let decoder: ContentDecoder
        init?(_ coding: String) {
            guard let decoder = ContentDecoder([coding], growth: .unlimited) else { return nil }
            self.decoder = decoder
        }
        var comesFirst: Bool { true }
        func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
            try decoder.decode(input) { output.append(contentsOf: $0) }
        }
        var isPending: Bool { decoder.isPending }
        func more(into output: inout [UInt8]) throws {
            try filter(UnsafeRawBufferPointer(start: nil, count: 0), into: &output)
        }
        func finish(into output: inout [UInt8]) throws { try decoder.finish() }
    }

    @Test(arguments: [(300_000, 200), (1_000_000, 502)])
    func `a ware gets decoded content whole after some turns, up to its limit in decoded bytes`(
        count: Int, status: Int
    ) async throws {
        let bomb = try Bomb.make(["br"], count: count)
        let whole = OnResponse(.whole(upTo: 300_000)) { [notes] response, _ in
            notes.add("\(response.content.bytes?.count ?? 0)")
            return .pass
        }
        let stage = try DriverStage([], after: [adding { First("br") }, whole])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .length(bomb.count))
            stage.stream.send(bomb)
            stage.stream.end()
            #expect(stage.client.status == nil)
        }
        await turns(stage) { $0.client.ends == 1 }
        #expect(await stage.step { $0.client.status } == status)
        // Content over the limit is not shown: the ware gets the error in its place.
        #expect(notes.all.contains("300000") == (status == 200))
        #expect(notes.all.allSatisfy { (Int($0) ?? 0) <= 300_000 })
    }

    @Test func `a client that leaves while content is decoded ends the exchange`() async throws {
        let bomb = try Bomb.make(["br"], count: 1 << 20)
        let whole = OnResponse(.whole(upTo: 1 << 20)) { _, _ in .pass }
        let stage = try DriverStage([], after: [adding { First("br") }, whole])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .length(bomb.count))
            stage.stream.send(bomb)
            stage.stream.end()
            stage.driver.clientLeft()
        }
        await stage.advance(by: .milliseconds(1))
        await stage.step { stage in
            #expect(stage.driver.phase == .ended)
            #expect(stage.client.status == nil)
        }
    }

    // MARK: Failures

    @Test(arguments: [true, false])
    func `a filter's own error is kept, whole or streamed, with a pace or without`(isPaced: Bool) async throws {
        final class Refusing: ContentFilter {
            func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
                throw GatewayError(.upstream, .responseIncomplete, "the filter's own")
            }
        }
        final class Pace: ContentPace {
            func reserve(_ count: Int, at now: LoopInstant) -> (count: Int, wait: Duration) { (count, .zero) }
        }
        let filters = OnResponse { _, exchange in
            exchange.filterResponseContent(with: Refusing())
            if isPaced { exchange.slowResponse(by: Pace()) }
            return .pass
        }
        for isWhole in [true, false] {
            let whole = OnResponse(isWhole ? .whole(upTo: 100) : .none) { _, _ in .pass }
            let stage = try DriverStage([], after: [filters, whole])
            await stage.begin()
            await stage.step { stage in
                stage.stream.respond(text: "abc")
                #expect(stage.driver.exchange.failure?.fault == .responseIncomplete)
                #expect(stage.driver.exchange.failure?.side == .upstream)
                if isWhole { #expect(stage.client.status == 502) } else { #expect(stage.client.cuts == 1) }
            }
        }
    }

    // MARK: Requests

    /// The guard's part of the server.
    private final class Watch: PlaceholderWatch {
        func credential(of placeholder: TokenPlaceholder) -> String? { "app" }
        func refused(_ placeholder: TokenPlaceholder, _ reason: String, _ exchange: Exchange) {}
    }

    private func guarded(_ wares: [any Ware] = []) async throws -> DriverStage {
        let stage = try DriverStage(wares)
        await stage.step { $0.server.placeholders = Watch() }
        return stage
    }

    private func fields(_ coding: String) throws -> HttpFields {
        var fields = HttpFields()
        try fields.set(.contentEncoding, to: coding)
        return fields
    }

    private func post(
        _ stage: DriverStage, _ content: [UInt8], _ fields: HttpFields, isWhole: Bool = true, isBomb: Bool = false
    ) async {
        await stage.begin(.post, extent: .length(content.count), fields: fields)
        await stage.step { stage in
            content.withUnsafeBytes { stage.driver.requestContent($0) }
            if isWhole, stage.driver.phase != .ended { stage.driver.requestEnded(nil) }
            // Long content takes more than this turn.
            if content.count > 100_000 || isBomb { #expect(stage.origin.streams.isEmpty) }
        }
    }

    @Test(arguments: Bomb.codings)
    func `a request that is held is searched in turns, and then goes upstream as it came`(coding: String) async throws {
        let bomb = try Bomb.make([coding], of: "hwp_", count: 1 << 20)
        let stage = try await guarded()
        await post(stage, bomb, try fields(coding), isBomb: true)
        await turns(stage) { !$0.origin.streams.isEmpty }
        await stage.step { stage in
            #expect(stage.stream.content == bomb)
            #expect(stage.stream.ends == 1)
        }
    }

    @Test(arguments: [["br"], ["zstd"], ["gzip", "gzip"]])
    func `a request of some bytes that decode to megabytes is refused`(codings: [String]) async throws {
        let bomb = try Bomb.make(codings, of: "hwp_", count: 16 << 20)
        let stage = try await guarded()
        await post(stage, bomb, try fields(codings.joined(separator: ", ")))
        await turns(stage) { $0.client.status != nil }
        #expect(await stage.step { $0.client.status } == 400)
        #expect(await stage.step { $0.origin.streams.isEmpty })
    }

    @Test func `a held request has a limit in decoded bytes`() async throws {
        let bomb = try Bomb.make(["gzip"], count: SearchedContent.mostDecoded + 1)
        let stage = try await guarded()
        await post(stage, bomb, ["Content-Encoding": "gzip"])
        await turns(stage) { $0.client.status != nil }
        #expect(await stage.step { $0.client.status } == 413)
    }

    @Test(arguments: Bomb.codings)
    func `a placeholder behind a bomb is refused before any byte goes upstream`(coding: String) async throws {
        var text = [UInt8](repeating: 0x30, count: 900_000)
        text += placeholder.bytes
        let stage = try await guarded()
        await post(stage, try Bomb.encode(text, coding), try fields(coding))
        await turns(stage) { $0.client.status != nil }
        #expect(await stage.step { $0.client.status } == 403)
        #expect(await stage.step { $0.origin.streams.isEmpty })
    }

    @Test(arguments: Bomb.codings)
    func `streamed content is decoded in turns, and the client waits`(coding: String) async throws {
        let bomb = try Bomb.make([coding], of: "hwp_", count: 1 << 20)
        let stage = try await guarded()
        await post(stage, bomb, try fields(coding), isWhole: false)
        // The client pauses: the content streams from here on.
        await stage.advance(by: .milliseconds(50))
        #expect(await stage.step { !$0.origin.streams.isEmpty })
        await turns(stage) { !$0.client.isPaused }
        await stage.step { $0.driver.requestEnded(nil) }
        await turns(stage) { $0.stream.ends == 1 }
        #expect(await stage.step { $0.stream.content } == bomb)
    }

    @Test func `a request's end that comes while content is decoded goes upstream after it`() async throws {
        let bomb = try Bomb.make(["gzip"], of: "hwp_", count: 1 << 20)
        let stage = try await guarded()
        await post(stage, bomb, ["Content-Encoding": "gzip"], isWhole: false)
        await stage.advance(by: .milliseconds(50))
        await stage.step { $0.driver.requestEnded(nil) }
        await turns(stage) { $0.stream.ends == 1 }
        #expect(await stage.step { $0.stream.content } == bomb)
    }

    @Test func `long content without a coding is searched in turns as well`() async throws {
        let text = [UInt8](repeating: 0x5f, count: 600_000)
        let stage = try await guarded()
        await post(stage, text, [:])
        await turns(stage) { !$0.origin.streams.isEmpty && $0.stream.ends == 1 }
        #expect(await stage.step { $0.stream.content } == text)
    }

    @Test func `a client that leaves while its request is searched sends nothing upstream`() async throws {
        let bomb = try Bomb.make(["gzip"], of: "hwp_", count: 1 << 20)
        let stage = try await guarded()
        await stage.begin(.post, extent: .length(bomb.count), fields: ["Content-Encoding": "gzip"])
        await stage.step { stage in
            bomb.withUnsafeBytes { stage.driver.requestContent($0) }
            stage.driver.requestEnded(nil)
            stage.driver.clientLeft()
        }
        #expect(await stage.step { $0.origin.streams.isEmpty })
    }

    // MARK: aws-chunked

    @Test func `content in aws-chunked is searched as if it were whole, and passes as it came`() async throws {
        let text = "3\r\nabc\r\n2\r\nde\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n"
        let stage = try await guarded()
        await post(stage, Array(text.utf8), ["Content-Encoding": "aws-chunked", "Content-Type": "application/json"])
        await stage.step { stage in
            #expect(stage.stream.text == text)
            #expect(stage.stream.request?.fields[.contentEncoding] == "aws-chunked")
        }
    }

    @Test(arguments: ["chunks", "trailer", "gzip"])
    func `a placeholder in aws-chunked is refused, also if it is split over chunks`(place: String) async throws {
        let hold = placeholder.text
        var coded = Array("abc\(hold)".utf8)
        if place == "gzip" { coded = try Bomb.encode(coded, "gzip") }
        var framed: [UInt8] = []
        for part in [coded.prefix(10), coded.dropFirst(10)] {
            framed += Array("\(String(part.count, radix: 16))\r\n".utf8) + part + Array("\r\n".utf8)
        }
        framed += Array("0\r\n\r\n".utf8)
        if place == "trailer" { framed = Array("3\r\nabc\r\n0\r\nx-amz-meta:\(hold)\r\n\r\n".utf8) }
        let list = place == "gzip" ? "aws-chunked,gzip" : "aws-chunked"
        let stage = try await guarded()
        await post(stage, framed, try fields(list))
        #expect(await stage.step { $0.client.status } == 403)
        #expect(await stage.step { $0.origin.streams.isEmpty })
    }

    // MARK: Small responses

    @Test func `a response that drips is not held for longer than a second`() async throws {
        let small = OnResponse(.ifWhole(upTo: 1 << 20)) { [notes] response, _ in
            notes.add(response.content.bytes == nil ? "without content" : "whole")
            return .pass
        }
        let stage = try DriverStage([], after: [small])
        await stage.begin()
        await stage.step { $0.stream.respond(extent: .unknown) }
        for _ in 0..<30 {
            await stage.step { $0.stream.send("a") }
            await stage.advance(by: .milliseconds(40))
        }
        #expect(notes.all == ["without content"])
        #expect(await stage.step { $0.client.status } == 200)
        await stage.step { $0.stream.end() }
        #expect(await stage.step { $0.client.text } == String(repeating: "a", count: 30))
    }

    @Test func `content that the request's filters hold goes on while a small response is collected`() async throws {
        final class Holding: ContentFilter {
            var held: [UInt8] = []
            var holdsBack: Bool { !held.isEmpty }
            func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) { held += input }
            func flush(into output: inout [UInt8]) {
                output += held
                held = []
            }
            func finish(into output: inout [UInt8]) { flush(into: &output) }
        }
        let holds = OnRequest { _, exchange in
            exchange.filterRequestContent(with: Holding())
            return .pass
        }
        let small = OnResponse(.ifWhole(upTo: 1 << 20)) { _, _ in .pass }
        let stage = try DriverStage([holds], after: [small])
        await stage.begin(.post, extent: .unknown)
        await stage.step { $0.stream.respond(extent: .unknown) }
        await stage.upload("abc")
        for _ in 0..<2 {
            await stage.step { $0.stream.send("a") }
            await stage.advance(by: .milliseconds(30))
        }
        #expect(await stage.step { $0.stream.text } == "abc")
    }
}
