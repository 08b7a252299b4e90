/// Takes the codings of `Content-Encoding` off content, as it streams. RFC 9110 §8.4.
///
/// Each member of a gzip or Zstandard stream is decoded. What is made of a piece goes to the caller in parts of bounded size.
public final class ContentDecoder {
    /// Content cannot be decoded.
    public struct Fault: Error, CustomStringConvertible {
        public let description: String

        public init(description: String) { self.description = description }
    }

    /// In the order in which they are taken off.
    private let layers: [any CodingReader]
    private var consumed = 0
    private var produced = 0

    /// The most codings of one content.
    private static let mostLayers = 4
    /// Content that grows more than this, once it is large, is made to fill memory. gzip reaches 1,032.
    private static let mostGrowth = 1100
    private static let largeContent = 16 << 20
    private static let room = 64 << 10

    /// A decoder for the values of `Content-Encoding`. `nil` if one of them is unknown, if there are too many, or without memory.
    /// Without a coding the content passes as it is.
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

    /// Whether the content passes as it is.
    public var isIdentity: Bool { layers.isEmpty }

    /// Decodes a piece. The parts are valid during the call of `body` only.
    public func decode(_ input: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        consumed += input.count
        try run(input, layer: 0, body)
    }

    /// The content has ended. Throws if it is not whole.
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
                // A full room: more may be left inside.
                if step.produced == memory.count { continue }
                if rest.isEmpty { return }
                guard step.consumed + step.produced > 0 else {
                    throw Fault(description: "the coded content cannot be decoded")
                }
            }
        }
    }
}

/// Takes one coding off.
protocol CodingReader: AnyObject {
    /// Decodes as much of the input as there is room for.
    func read(_ input: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) throws -> (
        consumed: Int, produced: Int
    )
    /// The content could end here.
    var isWhole: Bool { get }
}
