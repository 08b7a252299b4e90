/// Removes the codings of `Content-Encoding` from content as it streams, in steps of bounded size. RFC 9110 §8.4.
///
/// It decodes every member of a gzip or Zstandard stream. A few bytes can decode to many megabytes, so each call decodes a limited
/// number of bytes, and the rest of the input waits inside: `isPending` says so. The caller continues in a later turn of its loop.
public final class ContentDecoder {
    /// The content cannot be decoded.
    public struct Fault: Error, CustomStringConvertible {
        public let description: String

        public init(description: String) { self.description = description }
    }

    /// The maximum expansion of content; more is an attempt to exhaust time or memory.
    public struct Growth: Sendable {
        /// The number of decoded bytes to which the ratio does not apply.
        var free: Int
        /// The maximum number of decoded bytes for each coded one.
        var ratio: Int

        /// A maximum expansion.
        ///
        /// - Parameters:
        ///   - free: the number of decoded bytes to which the ratio does not apply.
        ///   - ratio: the maximum number of decoded bytes for each coded one.
        public init(free: Int, ratio: Int) {
            self.free = free
            self.ratio = ratio
        }

        /// The usual maximum. gzip reaches 1,032, so it never exceeds this; Brotli and Zstandard can turn some bytes into any number.
        public static let usual = Growth(free: 1 << 20, ratio: 1100)
        /// No maximum: the receiver takes the content at its own pace, and limits its length.
        public static let unlimited = Growth(free: .max, ratio: .max)
    }

    /// One coding, and the input that waits for its decoder.
    private struct Layer {
        let reader: any CodingReader
        var waiting: [UInt8] = []
        var from = 0

        /// Adds the rest of an input to what waits.
        mutating func keep(_ rest: UnsafeRawBufferPointer) {
            if from == waiting.count {
                waiting.removeAll(keepingCapacity: true)
                from = 0
            } else if from > ContentDecoder.room {
                waiting.removeFirst(from)
                from = 0
            }
            waiting.append(contentsOf: rest)
        }
    }

    /// The decoders, in the order in which the codings are removed.
    private var layers: [Layer]
    private let growth: Growth
    private var consumed = 0
    private var produced = 0
    /// The numbers of bytes that the current call may still produce and consume.
    private var mayProduce = 0
    private var mayConsume = 0
    /// The framing that was removed before the codings; `nil` without it.
    let chunks: AwsChunkedReader?

    /// Whether input waits that has not been decoded: call `decode` again, without further input.
    public private(set) var isPending = false

    /// The maximum number of codings of one content.
    private static let mostLayers = 4
    private static let room = 64 << 10
    /// The number of bytes that a filter decodes in one turn of its loop: some milliseconds of work, with a search behind it.
    public static let step = 64 << 10

    /// Makes a decoder for the values of `Content-Encoding`. `nil` if one of them is unknown, if there are too many, or if memory is
    /// exhausted. Without a coding the content passes unchanged.
    public convenience init?(_ values: [String], growth: Growth = .usual) {
        self.init(values, growth: growth, readsChunks: false)
    }

    /// With `readsChunks`, the framing `aws-chunked` is removed too. It is always the outermost, wherever it is listed.
    init?(_ values: [String], growth: Growth = .usual, readsChunks: Bool) {
        guard var names = ContentDecoder.names(values) else { return nil }
        var layers: [Layer] = []
        chunks = readsChunks && names.contains(AwsChunkedReader.name) ? AwsChunkedReader() : nil
        if let chunks {
            names.removeAll { $0 == AwsChunkedReader.name }
            layers.append(Layer(reader: chunks))
        }
        guard names.count <= ContentDecoder.mostLayers else { return nil }
        for name in names.reversed() {
            let reader: (any CodingReader)? =
                switch name {
                case "gzip", "x-gzip": InflateReader(.gzip)
                case "deflate": InflateReader(.deflate)
                case "br": BrotliReader()
                case "zstd": ZstdReader()
                default: nil
                }
            guard let reader else { return nil }
            layers.append(Layer(reader: reader))
        }
        self.layers = layers
        self.growth = growth
    }

    /// The names of codings, in lower case, in the order in which they were applied; `nil` if a value is malformed.
    private static func names(_ values: [String]) -> [String]? {
        var names: [String] = []
        for member in values.joined(separator: ",").split(separator: ",", omittingEmptySubsequences: true) {
            let name = member.filter { $0 != " " && $0 != "\t" }.lowercased()
            if !name.isEmpty, name != "identity" { names.append(name) }
        }
        return names
    }

    /// The codings that can be decoded, as `Accept-Encoding` lists them.
    public static let names = ["gzip", "deflate", "br", "zstd"]

    /// Whether the content passes unchanged.
    public var isIdentity: Bool { layers.isEmpty }

    /// Decodes a piece, after the input that still waits, up to `most` bytes. The parts are valid during the call of `body` only.
    ///
    /// If `isPending` is true afterwards, call this again without input before the end of the content. Input may be added meanwhile.
    public func decode(
        _ input: UnsafeRawBufferPointer, upTo most: Int = step, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        consumed += input.count
        guard !layers.isEmpty else {
            if input.count > 0 { try body(input) }
            return
        }
        mayProduce = max(1, most)
        // Input without output, such as empty members, is work as well.
        mayConsume = 4 * max(ContentDecoder.step, min(most, ContentDecoder.room))
        var input = input
        if layers[0].from < layers[0].waiting.count {
            layers[0].keep(input)
            input = UnsafeRawBufferPointer(start: nil, count: 0)
        }
        try withUnsafeTemporaryAllocation(byteCount: min(ContentDecoder.room, mayProduce), alignment: 16) { memory in
            while mayProduce > 0, mayConsume > 0 {
                let free = UnsafeMutableRawBufferPointer(rebasing: memory[..<min(memory.count, mayProduce)])
                let count = try fill(free, from: layers.count - 1, &input)
                guard count > 0 else { break }
                try body(UnsafeRawBufferPointer(rebasing: free[..<count]))
            }
        }
        isPending = mayProduce <= 0 || mayConsume <= 0
        if input.count > 0 { layers[0].keep(input) }
    }

    /// Decodes complete content into `output`, up to `limit` bytes. Returns whether that was all of it. For code that may take
    /// its time: off the loops, or with a low limit.
    public func decode(_ input: [UInt8], into output: inout [UInt8], upTo limit: Int) throws -> Bool {
        try input.withUnsafeBytes { bytes in
            if isIdentity {
                output.append(contentsOf: bytes.prefix(limit))
                return bytes.count <= limit
            }
            var next = bytes
            var isTooLong = false
            repeat {
                try decode(next, upTo: min(ContentDecoder.room, max(1, limit - output.count))) { part in
                    let free = max(0, limit - output.count)
                    output.append(contentsOf: part.prefix(free))
                    isTooLong = part.count > free
                }
                next = UnsafeRawBufferPointer(start: nil, count: 0)
            } while isPending && !isTooLong
            return !isTooLong
        }
    }

    /// The content has ended. Throws if it is incomplete.
    public func finish() throws {
        for layer in layers where !layer.reader.isWhole || layer.from < layer.waiting.count {
            throw Fault(description: "the coded content is not whole")
        }
    }

    /// Fills the room by the decoder of that layer, which takes its input from the layer before it. Returns the number of bytes; 0 if
    /// more input is needed, or the call has done enough.
    private func fill(
        _ room: UnsafeMutableRawBufferPointer, from index: Int, _ input: inout UnsafeRawBufferPointer
    ) throws -> Int {
        while mayProduce > 0, mayConsume > 0 {
            let step = index == 0 ? try readFirst(&input, into: room) : try readWaiting(index, into: room)
            if step.produced > 0 { return step.produced }
            if step.consumed > 0 { continue }
            guard !step.hasInput else { throw Fault(description: "the coded content cannot be decoded") }
            guard index > 0 else { return 0 }
            // The room between two layers.
            let count = try withUnsafeTemporaryAllocation(byteCount: ContentDecoder.room / 4, alignment: 16) { memory in
                let count = try fill(memory, from: index - 1, &input)
                layers[index].keep(UnsafeRawBufferPointer(rebasing: memory[..<count]))
                return count
            }
            guard count > 0 else { return 0 }
        }
        return 0
    }

    private typealias Step = (consumed: Int, produced: Int, hasInput: Bool)

    /// The first layer reads what waits, and then the input itself, which is not copied.
    private func readFirst(
        _ input: inout UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer
    ) throws -> Step {
        if layers[0].from < layers[0].waiting.count { return try readWaiting(0, into: room) }
        let piece = UnsafeRawBufferPointer(rebasing: input.prefix(mayConsume))
        let step = try layers[0].reader.read(piece, into: room)
        input = UnsafeRawBufferPointer(rebasing: input[step.consumed...])
        mayConsume -= step.consumed
        try count(step.produced)
        return (step.consumed, step.produced, piece.count > 0)
    }

    private func readWaiting(_ index: Int, into room: UnsafeMutableRawBufferPointer) throws -> Step {
        let (from, end) = (layers[index].from, layers[index].waiting.count)
        let most = index == 0 ? min(end, from + mayConsume) : end
        let step = try layers[index].waiting.withUnsafeBytes {
            try layers[index].reader.read(UnsafeRawBufferPointer(rebasing: $0[from..<most]), into: room)
        }
        layers[index].from += step.consumed
        if index == 0 { mayConsume -= step.consumed }
        try count(step.produced)
        return (step.consumed, step.produced, most > from)
    }

    /// Counts output, also between two layers: it is work, and it may grow there only.
    private func count(_ bytes: Int) throws {
        mayProduce -= bytes
        produced += bytes
        if produced > growth.free, produced / growth.ratio > consumed {
            throw Fault(description: "the coded content grows without bound")
        }
    }
}

/// Removes one coding.
protocol CodingReader: AnyObject {
    /// Decodes as much of the input as the room can hold.
    func read(_ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) throws -> (
        consumed: Int, produced: Int
    )
    /// Whether the content may end here.
    var isWhole: Bool { get }
}
