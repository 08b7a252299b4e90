@testable import HttpWare

extension Fuzzing {
    /// Content in codings, one inside of the other. However it is cut and however small the steps are, the result is the same. No step
    /// gives more than its limit, each step gives or takes something, and the number of steps is bounded by the bytes: so no input keeps
    /// a loop busy for longer than a step.
    public static func contentCodings(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        var bytes = Array(UnsafeBufferPointer(start: start, count: count))
        guard let kind = bytes.popLast(), let cut = bytes.popLast() else { return }
        let names = ["gzip", "deflate", "br", "zstd", "aws-chunked"]
        var codings = [names[Int(kind) % 5]]
        if kind & 0x40 != 0 { codings.append(names[Int(kind >> 3) % 4]) }
        if kind & 0x80 != 0 { codings.append(names[Int(cut >> 3) % 4]) }
        let whole = decode(bytes, codings, by: .max, upTo: 1 << 16)
        let other = decode(bytes, codings, by: Int(cut) % 17 + 1, upTo: Int(cut) % 7 == 0 ? 997 : 1 << 14)
        require(whole == other, "\(codings) cut into pieces")
    }

    private static func decode(_ bytes: [UInt8], _ codings: [String], by piece: Int, upTo most: Int) -> [UInt8]? {
        guard let decoder = ContentDecoder(codings, readsChunks: true) else { return nil }
        var output: [UInt8] = []
        var total = 0
        var steps = 0
        func step(_ input: UnsafeRawBufferPointer) throws {
            let before = total
            try decoder.decode(input, upTo: most) { part in
                total += part.count
                if output.count < 1 << 20 { output.append(contentsOf: part) }
            }
            steps += 1
            require(total - before <= most, "a step gives \(total - before) bytes")
        }
        var rest = bytes[...]
        do {
            while !rest.isEmpty {
                try Array(rest.prefix(piece)).withUnsafeBytes { try step($0) }
                rest = rest.dropFirst(piece)
                while decoder.isPending { try step(UnsafeRawBufferPointer(start: nil, count: 0)) }
            }
            try decoder.finish()
            require(total <= 1 << 20 + 1100 * (bytes.count + 1) + 1 << 16, "\(bytes.count) bytes become \(total)")
            return output
        } catch {
            return nil
        }
    }
}
