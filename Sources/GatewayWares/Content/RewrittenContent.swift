import HttpWare

/// Replaces texts in content while it passes. Coded content is decoded, and encoded again.
final class RewrittenContent: ContentFilter {
    private var replacers: [TextReplacer]
    private let decoder: ContentDecoder?
    private let editing: ContentEditing
    /// `nil` without a coding, and once the content has ended.
    private var lent: EncoderPool.Lent?
    /// The coding with which the content is sent on; `nil` for none.
    let coding: ContentCoding?
    private var received = 0
    private var decoded = 0
    private(set) var holdsBack = false
    /// Decoded content that has not been rewritten, because the output of a step is limited.
    private var waiting: [UInt8] = []
    private var from = 0

    /// A larger ratio of decoded to received bytes, in long content, is taken as an attack that would keep the gateway
    /// busy.
    private static let mostGrowth = 256
    private static let longContent = 1 << 20
    /// The largest size that a rewritten piece may have.
    private static let mostAtOnce = 1 << 20
    /// The number of bytes that are rewritten at once, and the output after which the rest waits for another turn of the loop.
    private static let piece = 4096
    private static let step = 64 << 10

    /// `nil` if the content has a coding that cannot be decoded.
    init?(_ rules: [RewriteRule], codings: [String], _ editing: ContentEditing) {
        guard let decoder = ContentDecoder(codings) else { return nil }
        self.decoder = decoder.isIdentity ? nil : decoder
        self.editing = editing
        replacers = rules.compactMap { rule in
            guard case .text(let search) = rule.target else { return nil }
            return TextReplacer(search, with: rule.replacement, atMost: rule.max)
        }
        lent = editing.encoder(for: codings)
        coding = lent?.encoder.coding
    }

    deinit { end() }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        received += input.count
        if let decoder {
            try decode(input, by: decoder)
            holdsBack = lent != nil
        } else {
            waiting.append(contentsOf: input)
        }
        try rewrite(into: &output)
    }

    var isPending: Bool { from < waiting.count || decoder?.isPending ?? false }

    func more(into output: inout [UInt8]) throws {
        if let decoder, from == waiting.count { try decode(UnsafeRawBufferPointer(start: nil, count: 0), by: decoder) }
        try rewrite(into: &output)
    }

    /// Decodes a part of the content, which then waits to be rewritten.
    private func decode(_ input: UnsafeRawBufferPointer, by decoder: ContentDecoder) throws {
        try decoder.decode(input) { part in
            decoded += part.count
            guard decoded < RewrittenContent.longContent || decoded / RewrittenContent.mostGrowth < received else {
                throw ContentDecoder.Fault(description: "the coded content grows without bound")
            }
            waiting.append(contentsOf: part)
        }
    }

    /// Rewrites what waits, until the output is long enough for one turn of the loop.
    private func rewrite(into output: inout [UInt8]) throws {
        let start = output.count
        var written = 0
        while from < waiting.count, output.count - start < RewrittenContent.step, written < RewrittenContent.step * 4 {
            let end = min(waiting.count, from + RewrittenContent.piece)
            var rewritten: [UInt8] = []
            try waiting.withUnsafeBytes {
                try replace(UnsafeRawBufferPointer(rebasing: $0[from..<end]), from: 0, into: &rewritten)
            }
            from = end
            written += rewritten.count
            try send(rewritten, into: &output)
        }
        if from == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            from = 0
        }
    }

    private func send(_ bytes: [UInt8], into output: inout [UInt8]) throws {
        guard let lent else { return output += bytes }
        try bytes.withUnsafeBytes { try lent.encoder.encode($0, .more, into: &output) }
    }

    func flush(into output: inout [UInt8]) throws {
        guard holdsBack else { return }
        holdsBack = false
        try lent?.encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .flush, into: &output)
    }

    func finish(into output: inout [UInt8]) throws {
        try decoder?.finish()
        var rewritten: [UInt8] = []
        for index in replacers.indices {
            var rest: [UInt8] = []
            replacers[index].finish(into: &rest)
            try rest.withUnsafeBytes { try replace($0, from: index + 1, into: &rewritten) }
        }
        try send(rewritten, into: &output)
        holdsBack = false
        try lent?.encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .finish, into: &output)
        end()
    }

    /// Applies the rules in order; each gets the result of the previous ones. The result of each is limited.
    private func replace(_ input: UnsafeRawBufferPointer, from first: Int, into output: inout [UInt8]) throws {
        if first == replacers.count { return output.append(contentsOf: input) }
        var bytes: [UInt8] = []
        try replacers[first].replace(in: input, into: &bytes, upTo: RewrittenContent.mostAtOnce)
        for index in replacers.indices.dropFirst(first + 1) {
            var further: [UInt8] = []
            try bytes.withUnsafeBytes {
                try replacers[index].replace(in: $0, into: &further, upTo: RewrittenContent.mostAtOnce)
            }
            bytes = further
        }
        output += bytes
    }

    private func end() {
        if let lent { editing.giveBack(lent) }
        lent = nil
    }
}
