import Glibc
import HttpWare

/// Replaces a text in content that comes in pieces, in time that is linear in the content (Knuth, Morris, Pratt).
///
/// What it holds back between two pieces is always a beginning of the text, so it keeps only the length.
struct TextReplacer {
    /// The text that is looked for, prepared once.
    struct Search: Sendable, Hashable {
        let text: [UInt8]
        /// For each beginning of the text, the length of its longest end that is a beginning, too, and not all of it.
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
    /// How often the text was replaced.
    private(set) var count = 0

    /// At most `most` times.
    init(_ search: Search, with replacement: [UInt8], atMost most: Int) {
        self.search = search
        self.replacement = replacement
        self.most = most
    }

    /// The output would be larger than it may.
    struct Outgrown: Error {}

    /// Takes a piece, and appends what goes on in its place. Throws when the output is larger than `size` bytes.
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
            // The byte may begin the text anew: the search for its first byte goes on here.
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

    /// The content has ended: appends what is held back.
    mutating func finish(into output: inout [UInt8]) {
        output.append(contentsOf: search.text[..<matched])
        matched = 0
    }
}
