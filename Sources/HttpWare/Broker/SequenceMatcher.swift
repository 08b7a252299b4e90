/// A sequence of symbols to be found in streams: made once, used for all of them (Knuth, Morris and Pratt).
struct SequencePattern: Sendable {
    let symbols: [UInt8]
    /// For each number of matched symbols: how many are still matched if the next one does not fit.
    let shorter: [Int32]

    /// The pattern has at least one symbol.
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

/// Finds a pattern in one stream, in linear time, and knows where a match began that is not whole.
struct SequenceMatcher {
    let pattern: SequencePattern
    /// The number of symbols that are matched.
    private(set) var matched = 0
    /// Where the matched symbols began in the stream, behind some that do not count any more.
    private var starts: [Int] = []

    init(_ pattern: SequencePattern) { self.pattern = pattern }

    /// Takes the next symbol, which begins at `start` in the stream. Where the pattern began, if it is complete: then it is forgotten.
    mutating func step(_ symbol: UInt8, at start: Int) -> Int? {
        while matched > 0, pattern.symbols[matched] != symbol { matched = Int(pattern.shorter[matched]) }
        guard pattern.symbols[matched] == symbol else {
            if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
            return nil
        }
        // Starts that do not count any more go when they are the greater part.
        if starts.count > 2 * matched + 64 { starts.removeFirst(starts.count - matched) }
        starts.append(start)
        matched += 1
        guard matched == pattern.symbols.count else { return nil }
        let began = self.began
        forget()
        return began
    }

    /// Where the symbols began that are matched; there is at least one.
    var began: Int { starts[starts.count - matched] }

    /// What came so far does not count.
    mutating func forget() {
        matched = 0
        if !starts.isEmpty { starts.removeAll(keepingCapacity: true) }
    }
}
