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

    /// A larger ratio of decoded to received bytes, in long content, is taken as an attack that would keep the gateway
    /// busy.
    private static let mostGrowth = 256
    private static let longContent = 1 << 20
    /// The largest size of a decoded or rewritten piece, and for a long piece the largest size for each of its bytes. They limit
    /// the work on a loop.
    private static let mostAtOnce = 4 << 20
    private static let mostOfEachByte = 64

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
        let growth = max(RewrittenContent.mostAtOnce, RewrittenContent.mostOfEachByte * input.count)
        let most = output.count + growth
        guard let decoder else { return try replace(input, from: 0, into: &output, upTo: most) }
        received += input.count
        let mostDecoded = decoded + growth
        try decoder.decode(input) { part in
            decoded += part.count
            guard decoded <= mostDecoded,
                decoded < RewrittenContent.longContent || decoded / RewrittenContent.mostGrowth < received
            else {
                throw ContentDecoder.Fault(description: "the coded content grows without bound")
            }
            try replace(part, from: 0, into: &output, upTo: most)
        }
        holdsBack = lent != nil
    }

    func flush(into output: inout [UInt8]) throws {
        guard holdsBack else { return }
        holdsBack = false
        try lent?.encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .flush, into: &output)
    }

    func finish(into output: inout [UInt8]) throws {
        try decoder?.finish()
        let most = output.count + RewrittenContent.mostAtOnce
        for index in replacers.indices {
            var rest: [UInt8] = []
            replacers[index].finish(into: &rest)
            try rest.withUnsafeBytes { try replace($0, from: index + 1, into: &output, upTo: most) }
        }
        holdsBack = false
        try lent?.encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .finish, into: &output)
        end()
    }

    /// Applies the rules in order; each gets the result of the previous ones.
    private func replace(
        _ input: UnsafeRawBufferPointer, from first: Int, into output: inout [UInt8], upTo most: Int
    ) throws {
        if first == replacers.count {
            guard output.count + input.count <= most else { throw TextReplacer.Outgrown() }
            if let lent {
                try lent.encoder.encode(input, .more, into: &output)
            } else {
                output.append(contentsOf: input)
            }
            return
        }
        // In small steps, so that the result of each rule stays small.
        var from = 0
        while from < input.count {
            let step = UnsafeRawBufferPointer(rebasing: input[from..<min(from + 4096, input.count)])
            from += step.count
            var further: [UInt8] = []
            try replacers[first].replace(in: step, into: &further, upTo: RewrittenContent.mostAtOnce)
            try further.withUnsafeBytes { try replace($0, from: first + 1, into: &output, upTo: most) }
        }
    }

    private func end() {
        if let lent { editing.giveBack(lent) }
        lent = nil
    }
}
