/// Removes the codings of `Content-Encoding` from content as it streams. RFC 9110 §8.4.
///
/// It decodes every member of a gzip or Zstandard stream. The output for a piece is passed on in parts of bounded size.
public final class ContentDecoder {
    /// The content cannot be decoded.
    public struct Fault: Error, CustomStringConvertible {
        public let description: String

        public init(description: String) { self.description = description }
    }

    /// The decoders, in the order in which the codings are removed.
    private let layers: [any CodingReader]
    private var consumed = 0
    private var produced = 0

    /// The maximum number of codings of one content.
    private static let mostLayers = 4
    /// The maximum expansion of large content; more is an attempt to exhaust memory. gzip reaches 1,032.
    private static let mostGrowth = 1100
    private static let largeContent = 16 << 20
    private static let room = 64 << 10

    /// Makes a decoder for the values of `Content-Encoding`. `nil` if one of them is unknown, if there are too many, or if memory is
    /// exhausted. Without a coding the content passes unchanged.
    public init?(_ values: [String]) {
        guard let names = ContentDecoder.names(values), names.count <= ContentDecoder.mostLayers else { return nil }
        var layers: [any CodingReader] = []
        for name in names.reversed() {
            let layer: (any CodingReader)? =
                switch name {
                case "gzip", "x-gzip": InflateReader(.gzip)
                case "deflate": InflateReader(.deflate)
                case "br": BrotliReader()
                case "zstd": ZstdReader()
                default: nil
                }
            guard let layer else { return nil }
            layers.append(layer)
        }
        self.layers = layers
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

    /// Decodes a piece. The parts are valid during the call of `body` only.
    public func decode(_ input: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        consumed += input.count
        try run(input, layer: 0, body)
    }

    /// The content has ended. Throws if it is incomplete.
    public func finish() throws {
        for layer in layers where !layer.isWhole { throw Fault(description: "the coded content is not whole") }
    }

    private func run(
        _ input: UnsafeRawBufferPointer, layer: Int, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) throws {
        guard layer < layers.count else {
            produced += input.count
            if produced > ContentDecoder.largeContent, produced / ContentDecoder.mostGrowth > consumed {
                throw Fault(description: "the coded content grows without bound")
            }
            if input.count > 0 { try body(input) }
            return
        }
        var rest = input
        try withUnsafeTemporaryAllocation(byteCount: ContentDecoder.room, alignment: 16) { memory in
            while true {
                let step = try layers[layer].read(rest, into: memory)
                rest = UnsafeRawBufferPointer(rebasing: rest[step.consumed...])
                if step.produced > 0 {
                    try run(UnsafeRawBufferPointer(rebasing: memory[..<step.produced]), layer: layer + 1, body)
                }
                // The buffer is full: the decoder may hold more output.
                if step.produced == memory.count { continue }
                if rest.isEmpty { return }
                guard step.consumed + step.produced > 0 else {
                    throw Fault(description: "the coded content cannot be decoded")
                }
            }
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
