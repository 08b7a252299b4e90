/// Replaces tokens by a placeholder in a response's content while it streams. Content codings are removed for this.
public final class ScrubbedContent: ContentFilter {
    private let decoder: ContentDecoder?
    private var scrubbers: [TokenScrubber]
    private let found: () -> Void
    private var isFound = false

    /// Searches content with these values of `Content-Encoding`; `nil` if one of them cannot be decoded. `found` is called
    /// once, at the first find.
    public init?(
        _ tokens: [TokenSearch], placeholder: TokenPlaceholder, codings: [String] = [], found: @escaping () -> Void
    ) {
        guard let decoder = ContentDecoder(codings) else { return nil }
        self.decoder = decoder.isIdentity ? nil : decoder
        self.found = found
        scrubbers = tokens.map { TokenScrubber($0, placeholder: placeholder) }
    }

    /// A token was found whose first bytes were already sent.
    struct Fault: Error, CustomStringConvertible {
        let description = "the response holds the token of the request, in pieces with pauses between them"
    }

    public var holdsBack: Bool { scrubbers.contains { $0.holdsBack } }

    public func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        guard let decoder else { return try scrub(input, from: 0, into: &output) }
        try decoder.decode(input, upTo: step) { try scrub($0, from: 0, into: &output) }
    }

    /// The number of bytes that are decoded at once: the time for a byte grows with the number of tokens.
    private var step: Int { max(ContentDecoder.step / max(1, scrubbers.count), 4 << 10) }

    public var isPending: Bool { decoder?.isPending ?? false }

    public func more(into output: inout [UInt8]) throws {
        try decoder?.decode(UnsafeRawBufferPointer(start: nil, count: 0), upTo: step) {
            try scrub($0, from: 0, into: &output)
        }
    }

    public func flush(into output: inout [UInt8]) throws {
        try pass(into: &output) { $0.flush(into: &$1) }
    }

    public func finish(into output: inout [UInt8]) throws {
        try decoder?.finish()
        try pass(into: &output) { $0.finish(into: &$1) }
    }

    /// Passes the rest of each scrubber through the following ones.
    private func pass(into output: inout [UInt8], _ take: (inout TokenScrubber, inout [UInt8]) -> Void) throws {
        for index in scrubbers.indices {
            var rest: [UInt8] = []
            take(&scrubbers[index], &rest)
            if !rest.isEmpty { try rest.withUnsafeBytes { try scrub($0, from: index + 1, into: &output) } }
        }
        tell()
    }

    private func scrub(_ input: UnsafeRawBufferPointer, from first: Int, into output: inout [UInt8]) throws {
        guard first < scrubbers.count else {
            output.append(contentsOf: input)
            return
        }
        if first == scrubbers.count - 1 {
            var last: [UInt8] = []
            scrubbers[first].feed(input, into: &last)
            // The bytes that would complete a token after its beginning was sent are not sent.
            guard !scrubbers[first].isBroken else { throw Fault() }
            output += last
        } else {
            var further: [UInt8] = []
            scrubbers[first].feed(input, into: &further)
            guard !scrubbers[first].isBroken else { throw Fault() }
            try further.withUnsafeBytes { try scrub($0, from: first + 1, into: &output) }
        }
        tell()
    }

    private func tell() {
        guard !isFound, scrubbers.contains(where: { $0.finds > 0 }) else { return }
        isFound = true
        found()
    }
}

extension HttpFields {
    /// Replaces tokens by a placeholder in all values; a line whose name contains a token is removed. Returns whether one was found.
    public mutating func scrub(_ tokens: [TokenSearch], placeholder: TokenPlaceholder) -> Bool {
        var isFound = false
        for token in tokens {
            let lower = token.token.map(ByteClass.lower)
            for index in lines.indices where !lines[index].isRemoved {
                if lines[index].name.count >= lower.count, bytes[lines[index].name].map(ByteClass.lower).contains(lower)
                {
                    lines[index].flags |= Line.removed
                    isFound = true
                    continue
                }
                let value = Array(bytes[lines[index].value])
                guard value.withUnsafeBufferPointer({ token.prefixes.mayHold(in: $0) }) else { continue }
                var scrubber = TokenScrubber(token, placeholder: placeholder)
                guard let scrubbed = value.withUnsafeBytes({ scrubber.scrubbed($0) }) else { continue }
                setValue(scrubbed, ofLine: index)
                isFound = true
            }
        }
        return isFound
    }
}

extension [UInt8] {
    /// Whether these bytes contain the others.
    fileprivate func contains(_ other: [UInt8]) -> Bool {
        guard count >= other.count else { return false }
        return (0...(count - other.count)).contains { self[$0...].starts(with: other) }
    }
}
