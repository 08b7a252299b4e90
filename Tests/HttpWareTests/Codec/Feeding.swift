import Glibc
import Testing

@testable import HttpWare

/// The answers of a decoder about some bytes: enough of it to tell two answers apart.
enum Outcome: Equatable {
    case needsMore
    /// A whole head: all that was understood, as text, and its length.
    case head(String, length: Int)
    /// The status that tells the client, and why.
    case refused(HttpStatus, String)
}

/// A message as bytes: text where a line ends in CRLF, or anything else.
struct Wire: ExpressibleByStringLiteral, CustomTestStringConvertible, Sendable {
    var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }
    init(_ text: String) { bytes = Array(text.utf8) }
    init(stringLiteral text: String) { bytes = Array(text.utf8) }

    var testDescription: String { String(decoding: bytes.prefix(120), as: UTF8.self).debugDescription }
}

/// Feeds messages to the decoders whole, one byte at a time, and split in two at every place, and checks that all agree.
enum Feeding {
    /// The ends of what has come so far, for each way of feeding.
    private static func ways(_ count: Int) -> [[Int]] {
        var ways: [[Int]] = [[count], Array(1...max(1, count))]
        // All splits of long messages would take minutes.
        if count <= 700 { ways += (1..<max(2, count)).map { [$0, count] } }
        return ways.map { $0.filter { $0 <= count } }
    }

    @discardableResult
    static func request(
        _ wire: Wire, limits: HeadLimits = HeadLimits(), isReverse: Bool = true,
        sourceLocation: Testing.SourceLocation = #_sourceLocation
    ) -> (outcome: Outcome, request: HttpRequest) {
        var first: (Outcome, HttpRequest)?
        for ends in ways(wire.bytes.count) {
            var decoder = RequestHeadDecoder()
            var request = HttpRequest()
            var outcome = Outcome.needsMore
            for end in ends {
                do {
                    let length = try decoder.decode(
                        wire.bytes.span.bytes.extracting(first: end), into: &request, limits: limits,
                        isReverse: isReverse)
                    if let length { outcome = .head("\(describe(request)) \(decoder.framing)", length: length) }
                } catch {
                    outcome = .refused(error.status, error.reason)
                    #expect(error.side == .downstream, sourceLocation: sourceLocation)
                }
                // A message that is not whole can still be read: it is what postwares see with 400 and 408.
                if ends.count < 100 { _ = describe(request) }
                if outcome != .needsMore { break }
            }
            _ = describe(request)
            if let first {
                #expect(outcome == first.0, "fed up to \(ends.prefix(2))", sourceLocation: sourceLocation)
                if outcome != first.0 { return first }
            } else {
                first = (outcome, request)
            }
        }
        return first ?? (.needsMore, HttpRequest())
    }

    @discardableResult
    static func response(
        _ wire: Wire, to method: HttpMethod = .get, limits: HeadLimits = HeadLimits(),
        sourceLocation: Testing.SourceLocation = #_sourceLocation
    ) -> (outcome: Outcome, response: HttpResponse) {
        var first: (Outcome, HttpResponse)?
        for ends in ways(wire.bytes.count) {
            var decoder = ResponseHeadDecoder()
            var response = HttpResponse(.ok)
            var outcome = Outcome.needsMore
            for end in ends {
                do {
                    let length = try decoder.decode(
                        wire.bytes.span.bytes.extracting(first: end), into: &response, method: method, limits: limits)
                    if let length { outcome = .head("\(describe(response)) \(decoder.framing)", length: length) }
                } catch {
                    outcome = .refused(error.status, error.reason)
                    #expect(error.side == .upstream, sourceLocation: sourceLocation)
                }
                if ends.count < 100 { _ = describe(response) }
                if outcome != .needsMore { break }
            }
            _ = describe(response)
            if let first {
                #expect(outcome == first.0, "fed up to \(ends.prefix(2))", sourceLocation: sourceLocation)
                if outcome != first.0 { return first }
            } else {
                first = (outcome, response)
            }
        }
        return first ?? (.needsMore, HttpResponse(.ok))
    }

    /// The result of chunked content.
    enum Chunks: Equatable {
        case needsMore([UInt8])
        case end([UInt8], trailers: String, rest: Int)
        case refused(ChunkedFault)
    }

    @discardableResult
    static func chunks(
        _ wire: Wire, limits: HeadLimits = HeadLimits(), sourceLocation: Testing.SourceLocation = #_sourceLocation
    ) -> Chunks {
        var first: Chunks?
        for ends in ways(wire.bytes.count) {
            let outcome = chunks(wire.bytes, endingAt: ends, limits: limits)
            if let first, case .needsMore = first, case .needsMore = outcome {
                #expect(outcome == first, "fed up to \(ends.prefix(2))", sourceLocation: sourceLocation)
            } else if let first {
                #expect(outcome == first, "fed up to \(ends.prefix(2))", sourceLocation: sourceLocation)
                if outcome != first { return first }
            } else {
                first = outcome
            }
        }
        return first ?? .needsMore([])
    }

    /// Feeds the pieces that end at those places, each as an input of its own.
    static func chunks(_ bytes: [UInt8], endingAt ends: [Int], limits: HeadLimits = HeadLimits()) -> Chunks {
        var decoder = ChunkedDecoder(limits: limits)
        var content: [UInt8] = []
        var start = 0
        for end in ends {
            let piece = Array(bytes[start..<end])
            var position = 0
            reading: while true {
                do {
                    switch try decoder.next(piece.span.bytes, from: &position) {
                    case .content(let range): content += piece[range]
                    case .needsMore: break reading
                    case .end(let place):
                        return .end(content, trailers: decoder.trailers.description, rest: bytes.count - start - place)
                    }
                } catch {
                    return .refused(error)
                }
            }
            start = end
        }
        return .needsMore(content)
    }

    // MARK: Describing

    static func describe(_ request: HttpRequest) -> String {
        """
        \(request.method) \(request.version.number) \(request.target.form) received=\(request.receivedTarget)
        \(request.scheme) host=\(request.host ?? "-") port=\(request.port.map { "\($0)" } ?? "-")
        path=\(request.path) upstream=\(request.upstreamTarget) query=\(request.query ?? "-")
        content=\(request.content.extent) persistent=\(request.isPersistent) continue=\(request.expectsContinue)
        upgrade=\(request.upgrade ?? "-") trailers=\(request.acceptsTrailers) proxy=\(request.proxyAuthorization ?? "-")
        \(describe(request.fields))
        """
    }

    static func describe(_ response: HttpResponse) -> String {
        """
        \(response.status) \(response.version.number) reason=\(response.receivedReason ?? "-")
        content=\(response.content.extent) persistent=\(response.isPersistent)
        upgrade=\(response.upgrade ?? "-")
        \(describe(response.fields))
        """
    }

    private static func describe(_ fields: HttpFields) -> String {
        "\(fields)\n-- received --\n\(fields.received)"
    }

    // MARK: Encoding

    /// The head as it goes upstream.
    static func encode(_ request: HttpRequest, _ options: HeadEncoder.RequestOptions = .init()) -> [UInt8] {
        var request = request
        return encode { $0.write(&request, options) }
    }

    /// The head as it goes downstream.
    static func encode(_ response: HttpResponse, _ options: HeadEncoder.ResponseOptions = .init()) -> [UInt8] {
        var response = response
        return encode { $0.write(&response, options) }
    }

    static func encode(_ body: (inout HeadEncoder) -> Void) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 4 << 20) { buffer, count in
            var encoder = HeadEncoder(UnsafeMutableRawBufferPointer(buffer))
            body(&encoder)
            #expect(!encoder.isOverflown)
            count = encoder.count
        }
    }

    static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// Random numbers from a seed: a failure can be repeated. SplitMix64.
struct Seeded: RandomNumberGenerator {
    var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

/// The cost of a piece of work for this thread: other work on the machine does not count.
func processorTime(_ work: () -> Void) -> Duration {
    func now() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
    let start = now()
    work()
    return now() - start
}
