/// A sequence of symbols to search for in streams: made once, used for all of them (Knuth, Morris and Pratt).
struct SequencePattern: Sendable {
    let symbols: [UInt8]
    /// For each number of matched symbols: how many still match if the next symbol does not fit.
    let shorter: [Int32]

    /// The pattern must have at least one symbol.
    init(_ symbols: [UInt8]) {
        self.symbols = symbols
        var shorter = [Int32](repeating: 0, count: symbols.count + 1)
        var length = 0
        for index in symbols.indices.dropFirst() {
            while length > 0, symbols[index] != symbols[length] { length = Int(shorter[length]) }
            if symbols[index] == symbols[length] { length += 1 }
            shorter[index + 1] = Int32(length)
        }
        self.shorter = shorter
    }
}

/// Finds a pattern in one stream, in linear time, and knows where an incomplete match began.
struct SequenceMatcher {
    let pattern: SequencePattern
    /// The number of matched symbols.
    private(set) var matched = 0
    /// The starts of the matched symbols in the stream, after some obsolete ones.
    private var starts: [Int] = []

    init(_ pattern: SequencePattern) { self.pattern = pattern }

    /// Processes the next symbol, which begins at `start` in the stream. If the pattern is complete, returns where it began and forgets it.
    mutating func step(_ symbol: UInt8, at start: Int) -> Int? {
        while matched > 0, pattern.symbols[matched] != symbol { matched = Int(pattern.shorter[matched]) }
        guard pattern.symbols[matched] == symbol else {
            if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
            return nil
        }
        // Obsolete starts are removed when they are the majority.
        if starts.count > 2 * matched + 64 { starts.removeFirst(starts.count - matched) }
        starts.append(start)
        matched += 1
        guard matched == pattern.symbols.count else { return nil }
        let began = self.began
        forget()
        return began
    }

    /// The start of the first matched symbol; there must be at least one.
    var began: Int { starts[starts.count - matched] }

    /// Takes over the matched symbols of a matcher for the same pattern. Its own memory is reused.
    mutating func follow(_ other: SequenceMatcher) {
        matched = other.matched
        if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
        if matched > 0 { starts.append(contentsOf: other.starts.suffix(matched)) }
    }

    /// Discards the matched symbols.
    mutating func forget() {
        matched = 0
        if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
    }
}
