@testable import HttpWare

extension Fuzzing {
    /// Chunked content is the same however it comes, and again when it was chunked another time.
    public static func chunks(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let limits = limits(choice)
        let whole = read(wire, [wire.count], limits)
        let byByte = read(wire, Array(0...wire.count), limits)
        let split = read(wire, [min(choice, wire.count), wire.count], limits)
        require(
            whole.text == byByte.text && whole.content == byByte.content,
            "whole: \(whole.text)\nbyte by byte: \(byByte.text)")
        require(
            whole.text == split.text && whole.content == split.content, "whole: \(whole.text)\nsplit: \(split.text)")
        guard let trailers = whole.trailers else { return }

        let last = encode { ChunkWriter.writeLast(trailers, to: &$0) }
        let size = encode { ChunkWriter.writeHead(of: whole.content.count, to: &$0) }
        let chunk = whole.content.isEmpty ? [] : size + whole.content + ChunkWriter.end
        let second = read(chunk + last, [chunk.count + last.count], HeadLimits())
        require(second.content == whole.content, "the content is another")
        guard let again = second.trailers else { fatalError("\(text(last)) is refused: \(second.text)") }
        require(encode { ChunkWriter.writeLast(again, to: &$0) } == last, text(last))
    }

    private static func read(
        _ wire: [UInt8], _ ends: [Int], _ limits: HeadLimits
    ) -> (text: String, content: [UInt8], trailers: HttpFields?) {
        var decoder = ChunkedDecoder(limits: limits)
        var content: [UInt8] = []
        var start = 0
        for end in ends {
            let piece = Array(wire[start..<end])
            var position = 0
            reading: while true {
                do {
                    switch try decoder.next(piece.span.bytes, from: &position) {
                    case .content(let range):
                        require(!range.isEmpty, "content without bytes")
                        content += piece[range]
                    case .needsMore:
                        require(position == piece.count, "input is left")
                        break reading
                    case .end(let place): return ("end \(start + place) \(decoder.trailers)", content, decoder.trailers)
                    }
                } catch {
                    return ("\(error)", content, nil)
                }
            }
            start = end
        }
        return ("more", content, nil)
    }
}
