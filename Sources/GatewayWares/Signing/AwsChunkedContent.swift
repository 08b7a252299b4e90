import HttpWare

/// Content in the coding `aws-chunked`. Each chunk is signed, and its signature depends on the previous one, so content is signed
/// while it streams.
final class AwsChunkedContent: ContentFilter {
    /// The size of each chunk except the last, in bytes. AWS requires at least 8 KiB.
    static let chunkBytes = 65_536

    private let key: AwsSigningKey
    private let time: AwsTime
    private var signature: Digest256
    private var held: [UInt8] = []

    /// The request already states the encoded length.
    var keepsLength: Bool { true }

    /// The first chunk's signature depends on the signature of the request.
    init(_ key: AwsSigningKey, _ time: AwsTime, _ signature: Digest256) {
        self.key = key
        self.time = time
        self.signature = signature
        held.reserveCapacity(AwsChunkedContent.chunkBytes)
    }

    /// The encoded length of content of this length; `nil` if it overflows.
    static func length(of content: Int) -> Int? {
        let (whole, rest) = content.quotientAndRemainder(dividingBy: chunkBytes)
        let frames = whole.multipliedReportingOverflow(by: frameBytes(chunkBytes))
        let last = (rest > 0 ? frameBytes(rest) : 0) + frameBytes(0)
        let sum = frames.partialValue.addingReportingOverflow(last)
        let total = sum.partialValue.addingReportingOverflow(content)
        return frames.overflow || sum.overflow || total.overflow ? nil : total.partialValue
    }

    /// The bytes of a chunk in addition to its content.
    private static func frameBytes(_ count: Int) -> Int {
        String(count, radix: 16).utf8.count + ";chunk-signature=".utf8.count + 64 + 4
    }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        var rest = input[...]
        while !rest.isEmpty {
            let piece = rest.prefix(AwsChunkedContent.chunkBytes - held.count)
            held.append(contentsOf: piece)
            rest = rest.dropFirst(piece.count)
            if held.count == AwsChunkedContent.chunkBytes { write(to: &output) }
        }
    }

    func finish(into output: inout [UInt8]) {
        if !held.isEmpty { write(to: &output) }
        write(to: &output)
    }

    private func write(to output: inout [UInt8]) {
        let digest = held.withUnsafeBytes { Digest256(of: $0) }
        let former = signature
        signature = key.sign("AWS4-HMAC-SHA256-PAYLOAD", time) { text in
            former.appendHex(to: &text)
            text.append(0x0a)
            text += AwsSigV4.emptyDigest
            text.append(0x0a)
            digest.appendHex(to: &text)
        }
        output += String(held.count, radix: 16).utf8
        output += ";chunk-signature=".utf8
        signature.appendHex(to: &output)
        output += "\r\n".utf8
        output += held
        output += "\r\n".utf8
        held.removeAll(keepingCapacity: true)
    }
}
