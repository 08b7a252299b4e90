import Glibc
import HttpWare

/// Replaces a text in content that arrives in pieces, in linear time (Knuth, Morris, Pratt).
///
/// The bytes held back between two pieces are always a beginning of the text, so only their number is kept.
struct TextReplacer {
    /// The text to find, prepared once.
    struct Search: Sendable, Hashable {
        let text: [UInt8]
        /// For each beginning of the text, the length of its longest proper suffix that is also a beginning of the
        /// text.
        let borders: [Int32]

        /// The text must not be empty.
        init(_ text: [UInt8]) {
            self.text = text
            var borders = [Int32](repeating: 0, count: text.count)
            var length = 0
            for index in text.indices.dropFirst() {
                while length > 0, text[length] != text[index] { length = Int(borders[length - 1]) }
                if text[length] == text[index] { length += 1 }
                borders[index] = Int32(truncatingIfNeeded: length)
            }
            self.borders = borders
        }
    }

    private let search: Search
    private let replacement: [UInt8]
    private let most: Int
    private var matched = 0
    /// The number of replacements so far.
    private(set) var count = 0

    /// Replaces the text at most `most` times.
    init(_ search: Search, with replacement: [UInt8], atMost most: Int) {
        self.search = search
        self.replacement = replacement
        self.most = most
    }

    /// The output would exceed the maximum size.
    struct Outgrown: Error {}

    /// Takes a piece, and appends its replacement. Throws if the output becomes larger than `size` bytes.
    mutating func replace(
        in input: UnsafeRawBufferPointer, into output: inout [UInt8], upTo size: Int
    ) throws(Outgrown) {
        guard let start = input.baseAddress else { return }
        let text = search.text
        let borders = search.borders
        var matched = self.matched
        defer { self.matched = matched }
        var at = 0
        while at < input.count {
            if matched == 0 {
                let rest = input.count - at
                let found = count < most ? memchr(start + at, Int32(text[0]), rest) : nil
                let end = found.map { UnsafeRawPointer($0) - start } ?? input.count
                output.append(contentsOf: UnsafeRawBufferPointer(rebasing: input[at..<end]))
                at = end
                if at == input.count { break }
            }
            let byte = input[at]
            while matched > 0, text[matched] != byte {
                let border = Int(borders[matched - 1])
                output.append(contentsOf: text[..<(matched - border)])
                matched = border
            }
            // The byte may be the first one of the text: the search for that byte continues here.
            guard text[matched] == byte else { continue }
            at += 1
            matched += 1
            if matched == text.count {
                matched = 0
                count += 1
                output.append(contentsOf: replacement)
                guard output.count <= size else { throw Outgrown() }
            }
        }
        guard output.count <= size else { throw Outgrown() }
    }

    /// Appends the bytes held back, because the content has ended.
    mutating func finish(into output: inout [UInt8]) {
        output.append(contentsOf: search.text[..<matched])
        matched = 0
    }
}
