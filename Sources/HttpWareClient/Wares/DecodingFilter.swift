import HttpWare

/// Decodes content, in steps: while the reader of a stream takes its time, nothing is decoded. Used on one loop only.
final class DecodingFilter: ContentFilter {
    private let decoder: ContentDecoder

    /// The codings that the client requests, in the form of `Accept-Encoding`.
    static let accepted = "gzip, br, zstd"

    init(_ decoder: ContentDecoder) { self.decoder = decoder }

    var comesFirst: Bool { true }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        do {
            try decoder.decode(input) { output.append(contentsOf: $0) }
        } catch {
            throw DecodingFilter.fault("\(error)")
        }
    }

    var isPending: Bool { decoder.isPending }

    func more(into output: inout [UInt8]) throws {
        try filter(UnsafeRawBufferPointer(start: nil, count: 0), into: &output)
    }

    func finish(into output: inout [UInt8]) throws {
        do { try decoder.finish() } catch { throw DecodingFilter.fault("\(error)") }
    }

    static func fault(_ reason: String) -> GatewayError { GatewayError(.upstream, .responseMalformed, reason) }
}
