/// Finds a sequence of symbols in a stream, in linear time (Knuth, Morris and Pratt), and knows where a match began that is not whole.
struct SequenceMatcher {
    let pattern: [UInt8]
    /// For each number of matched symbols: how many are still matched if the next one does not fit.
    private let shorter: [Int32]
    /// The number of symbols that are matched.
    private(set) var matched = 0
    /// Where the last symbols began in the stream.
    private var starts: [Int]
    private var symbols = 0

    /// The pattern has at least one symbol.
    init(_ pattern: [UInt8]) {
        self.pattern = pattern
        var shorter = [Int32](repeating: 0, count: pattern.count + 1)
        var length = 0
        for index in pattern.indices.dropFirst() {
            while length > 0, pattern[index] != pattern[length] { length = Int(shorter[length]) }
            if pattern[index] == pattern[length] { length += 1 }
            shorter[index + 1] = Int32(length)
        }
        self.shorter = shorter
        starts = [Int](repeating: 0, count: pattern.count)
    }

    /// Takes the next symbol, which begins at `start` in the stream. Whether the pattern is complete: then it is forgotten.
    mutating func step(_ symbol: UInt8, at start: Int) -> Int? {
        while matched > 0, pattern[matched] != symbol { matched = Int(shorter[matched]) }
        starts[symbols % starts.count] = start
        symbols &+= 1
        guard pattern[matched] == symbol else { return nil }
        matched += 1
        guard matched == pattern.count else { return nil }
        let began = self.began
        matched = 0
        return began
    }

    /// Where the symbols began that are matched; there is at least one.
    var began: Int { starts[(symbols - matched) % starts.count] }

    /// What came so far does not count.
    mutating func forget() { matched = 0 }
}
