/// Puts a placeholder in place of tokens in a response's content while it streams. Codings are taken off for it.
public final class ScrubbedContent: ContentFilter {
    private let decoder: ContentDecoder?
    private var scrubbers: [TokenScrubber]
    private let found: () -> Void
    private var isFound = false

    /// Looks for tokens in content with these values of `Content-Encoding`; `nil` if one of them cannot be decoded. `found` is called
    /// at the first find.
    public init?(
        _ tokens: [Secret], placeholder: TokenPlaceholder, codings: [String] = [], found: @escaping () -> Void
    ) {
        guard let decoder = ContentDecoder(codings) else { return nil }
        self.decoder = decoder.isIdentity ? nil : decoder
        self.found = found
        scrubbers = tokens.compactMap { TokenScrubber(Array($0.revealed.utf8), placeholder: placeholder) }
    }

    public var holdsBack: Bool { scrubbers.contains { $0.holdsBack } }

    public func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        if let decoder {
            try decoder.decode(input) { scrub($0, from: 0, into: &output) }
        } else {
            scrub(input, from: 0, into: &output)
        }
    }

    public func flush(into output: inout [UInt8]) throws {
        pass(into: &output) { $0.flush(into: &$1) }
    }

    public func finish(into output: inout [UInt8]) throws {
        try decoder?.finish()
        pass(into: &output) { $0.finish(into: &$1) }
    }

    /// What each scrubber still gives goes through those behind it.
    private func pass(into output: inout [UInt8], _ take: (inout TokenScrubber, inout [UInt8]) -> Void) {
        for index in scrubbers.indices {
            var rest: [UInt8] = []
            take(&scrubbers[index], &rest)
            if !rest.isEmpty { rest.withUnsafeBytes { scrub($0, from: index + 1, into: &output) } }
        }
        tell()
    }

    private func scrub(_ input: UnsafeRawBufferPointer, from first: Int, into output: inout [UInt8]) {
        guard first < scrubbers.count else {
            output.append(contentsOf: input)
            return
        }
        if first == scrubbers.count - 1 {
            scrubbers[first].feed(input, into: &output)
        } else {
            var further: [UInt8] = []
            scrubbers[first].feed(input, into: &further)
            further.withUnsafeBytes { scrub($0, from: first + 1, into: &output) }
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
    /// Puts a placeholder in place of tokens in all values. Whether one was found.
    public mutating func scrub(_ tokens: [Secret], placeholder: TokenPlaceholder) -> Bool {
        var isFound = false
        for token in tokens {
            for index in lines.indices where !lines[index].isRemoved {
                guard var scrubber = TokenScrubber(Array(token.revealed.utf8), placeholder: placeholder) else { break }
                let value = Array(bytes[lines[index].value])
                guard let scrubbed = value.withUnsafeBytes({ scrubber.scrubbed($0) }) else { continue }
                setValue(scrubbed, ofLine: index)
                isFound = true
            }
        }
        return isFound
    }
}
