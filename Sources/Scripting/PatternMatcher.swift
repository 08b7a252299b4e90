/// Searches bytes for one of Lua's patterns (Lua 5.4 manual, §6.4.1), with a bound on its work: backtracking can take a time that grows
/// exponentially with the pattern.
struct PatternMatcher {
    /// A pattern cannot be used.
    enum Fault: Error, Equatable {
        /// It is malformed, or needs more than the matcher has.
        case invalid(Reason)
        /// The time has passed.
        case overTime
    }

    /// The reason why a pattern cannot be used.
    enum Reason: Equatable {
        case endsWithPercent, missingBracket, missingSet, missingBalance, unfinishedCapture, invalidCapture
        case tooManyCaptures, tooComplex
    }

    /// The range of a capture. `end` is -1 for the capture of a position.
    struct Capture: Equatable {
        var start = 0
        var end = PatternMatcher.open

        var isOpen: Bool { end == PatternMatcher.open }
    }

    /// The `end` of a capture whose closing parenthesis was not reached.
    fileprivate static let open = -2
    /// The `end` of a capture of a position.
    fileprivate static let position = -1
    /// The steps between two questions for the time.
    private static let batch = 4_096
    /// The deepest nesting of attempts, so that the stack is bounded.
    private static let mostDepth = 200

    private let subject: UnsafeBufferPointer<UInt8>
    private let pattern: UnsafeBufferPointer<UInt8>
    private let isOver: () -> Bool
    private var left = PatternMatcher.batch
    private var depth = 0
    private(set) var captures = InlineArray<32, Capture>(repeating: Capture())
    private(set) var captureCount = 0

    /// - Parameter isOver: Whether the time has passed. It is asked once in several thousand steps.
    init(
        _ pattern: UnsafeBufferPointer<UInt8>, in subject: UnsafeBufferPointer<UInt8>,
        isOver: @escaping () -> Bool
    ) {
        self.pattern = pattern
        self.subject = subject
        self.isOver = isOver
    }

    /// The first match that begins at the position or later. If `mayAnchor`, a first `^` allows only the position itself.
    mutating func search(from first: Int, mayAnchor: Bool = true) throws(Fault) -> Range<Int>? {
        let isAnchored = mayAnchor && !pattern.isEmpty && pattern[0] == UInt8(ascii: "^")
        var start = first
        while start <= subject.count {
            captureCount = 0
            depth = 0
            if let end = try match(start, isAnchored ? 1 : 0) {
                for place in 0..<captureCount where captures[place].isOpen { throw .invalid(.unfinishedCapture) }
                return start..<end
            }
            if isAnchored { return nil }
            start += 1
        }
        return nil
    }

    private mutating func step() throws(Fault) {
        left -= 1
        guard left <= 0 else { return }
        left = PatternMatcher.batch
        if isOver() { throw .overTime }
    }

    /// Matches the pattern from one of its places at one of the subject's. Returns the end of the match.
    private mutating func match(_ subjectStart: Int, _ patternStart: Int) throws(Fault) -> Int? {
        guard depth < PatternMatcher.mostDepth else { throw .invalid(.tooComplex) }
        depth += 1
        defer { depth -= 1 }
        var at = subjectStart
        var place = patternStart
        while place < pattern.count {
            try step()
            switch pattern[place] {
            case UInt8(ascii: "("):
                return place + 1 < pattern.count && pattern[place + 1] == UInt8(ascii: ")")
                    ? try capture(at, place + 2, end: PatternMatcher.position)
                    : try capture(at, place + 1, end: PatternMatcher.open)
            case UInt8(ascii: ")"):
                return try close(at, place + 1)
            case UInt8(ascii: "$") where place + 1 == pattern.count:
                return at == subject.count ? at : nil
            case UInt8(ascii: "%") where place + 1 < pattern.count:
                switch pattern[place + 1] {
                case UInt8(ascii: "b"):
                    guard let end = try balance(at, place + 2) else { return nil }
                    at = end
                    place += 4
                    continue
                case UInt8(ascii: "f"):
                    place += 2
                    guard place < pattern.count, pattern[place] == UInt8(ascii: "[") else {
                        throw .invalid(.missingSet)
                    }
                    let end = try endOfSingle(place)
                    let before = at == 0 ? 0 : subject[at - 1]
                    let here = at < subject.count ? subject[at] : 0
                    guard try !set(place, end, contains: before), try set(place, end, contains: here) else {
                        return nil
                    }
                    place = end
                    continue
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    guard let end = try again(at, pattern[place + 1]) else { return nil }
                    at = end
                    place += 2
                    continue
                default: break
                }
            default: break
            }
            let end = try endOfSingle(place)
            let suffix = end < pattern.count ? pattern[end] : 0
            switch suffix {
            case UInt8(ascii: "?"):
                if try single(at, place, end), let found = try match(at + 1, end + 1) { return found }
                place = end + 1
            case UInt8(ascii: "*"): return try longest(at, place, end, least: 0)
            case UInt8(ascii: "+"): return try longest(at, place, end, least: 1)
            case UInt8(ascii: "-"): return try shortest(at, place, end)
            default:
                guard try single(at, place, end) else { return nil }
                at += 1
                place = end
            }
        }
        return at
    }

    /// The place behind a single character, a class or a set.
    private mutating func endOfSingle(_ start: Int) throws(Fault) -> Int {
        var place = start + 1
        switch pattern[start] {
        case UInt8(ascii: "%"):
            guard place < pattern.count else { throw .invalid(.endsWithPercent) }
            return place + 1
        case UInt8(ascii: "["):
            if place < pattern.count, pattern[place] == UInt8(ascii: "^") { place += 1 }
            // A first bracket stands for itself.
            var isFirst = true
            while true {
                guard place < pattern.count else { throw .invalid(.missingBracket) }
                try step()
                let byte = pattern[place]
                place += 1
                if byte == UInt8(ascii: "]"), !isFirst { return place }
                isFirst = false
                if byte == UInt8(ascii: "%") {
                    guard place < pattern.count else { throw .invalid(.missingBracket) }
                    place += 1
                }
            }
        default: return place
        }
    }

    private mutating func single(_ at: Int, _ place: Int, _ end: Int) throws(Fault) -> Bool {
        guard at < subject.count else { return false }
        let byte = subject[at]
        switch pattern[place] {
        case UInt8(ascii: "."): return true
        case UInt8(ascii: "%"): return PatternMatcher.isClass(pattern[place + 1], byte)
        case UInt8(ascii: "["): return try set(place, end, contains: byte)
        default: return pattern[place] == byte
        }
    }

    /// Whether the set from its bracket to the place behind the other one contains the byte.
    private mutating func set(_ start: Int, _ end: Int, contains byte: UInt8) throws(Fault) -> Bool {
        var place = start + 1
        let last = end - 1
        let isPositive = pattern[place] != UInt8(ascii: "^")
        if !isPositive { place += 1 }
        while place < last {
            try step()
            if pattern[place] == UInt8(ascii: "%") {
                if PatternMatcher.isClass(pattern[place + 1], byte) { return isPositive }
                place += 2
            } else if place + 2 < last, pattern[place + 1] == UInt8(ascii: "-") {
                if pattern[place] <= byte, byte <= pattern[place + 2] { return isPositive }
                place += 3
            } else {
                if pattern[place] == byte { return isPositive }
                place += 1
            }
        }
        return !isPositive
    }

    private mutating func longest(_ at: Int, _ place: Int, _ end: Int, least: Int) throws(Fault) -> Int? {
        var count = 0
        while try single(at + count, place, end) {
            try step()
            count += 1
        }
        while count >= least {
            try step()
            if let found = try match(at + count, end + 1) { return found }
            count -= 1
        }
        return nil
    }

    private mutating func shortest(_ start: Int, _ place: Int, _ end: Int) throws(Fault) -> Int? {
        var at = start
        while true {
            try step()
            if let found = try match(at, end + 1) { return found }
            guard try single(at, place, end) else { return nil }
            at += 1
        }
    }

    private mutating func capture(_ at: Int, _ place: Int, end: Int) throws(Fault) -> Int? {
        guard captureCount < 32 else { throw .invalid(.tooManyCaptures) }
        captures[captureCount] = Capture(start: at, end: end)
        captureCount += 1
        if let found = try match(at, place) { return found }
        captureCount -= 1
        return nil
    }

    private mutating func close(_ at: Int, _ place: Int) throws(Fault) -> Int? {
        var number = captureCount - 1
        while number >= 0, !captures[number].isOpen { number -= 1 }
        guard number >= 0 else { throw .invalid(.invalidCapture) }
        captures[number].end = at
        if let found = try match(at, place) { return found }
        captures[number].end = PatternMatcher.open
        return nil
    }

    /// `%b()`: from one byte to another one that balances it.
    private mutating func balance(_ start: Int, _ place: Int) throws(Fault) -> Int? {
        guard place + 1 < pattern.count else { throw .invalid(.missingBalance) }
        guard start < subject.count, subject[start] == pattern[place] else { return nil }
        var at = start + 1
        var level = 1
        while at < subject.count {
            try step()
            let byte = subject[at]
            at += 1
            if byte == pattern[place + 1] {
                level -= 1
                if level == 0 { return at }
            } else if byte == pattern[place] {
                level += 1
            }
        }
        return nil
    }

    /// `%1`: the bytes of a capture again.
    private mutating func again(_ at: Int, _ digit: UInt8) throws(Fault) -> Int? {
        let number = Int(digit) - Int(UInt8(ascii: "1"))
        guard number >= 0, number < captureCount, !captures[number].isOpen else { throw .invalid(.invalidCapture) }
        let range = captures[number]
        guard range.end >= 0 else { throw .invalid(.invalidCapture) }
        let count = range.end - range.start
        guard subject.count - at >= count else { return nil }
        for offset in 0..<count {
            try step()
            if subject[range.start + offset] != subject[at + offset] { return nil }
        }
        return at + count
    }

    /// Whether the byte belongs to the class of the letter. A capital letter is for all other bytes, and any other byte stands for itself.
    private static func isClass(_ letter: UInt8, _ byte: UInt8) -> Bool {
        let belongs: Bool
        switch letter | 0x20 {
        case UInt8(ascii: "a"): belongs = isLetter(byte)
        case UInt8(ascii: "c"): belongs = byte < 0x20 || byte == 0x7f
        case UInt8(ascii: "d"): belongs = isDigit(byte)
        case UInt8(ascii: "g"): belongs = byte > 0x20 && byte < 0x7f
        case UInt8(ascii: "l"): belongs = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
        case UInt8(ascii: "p"): belongs = byte > 0x20 && byte < 0x7f && !isLetter(byte) && !isDigit(byte)
        case UInt8(ascii: "s"): belongs = byte == 0x20 || (byte >= 9 && byte <= 13)
        case UInt8(ascii: "u"): belongs = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
        case UInt8(ascii: "w"): belongs = isLetter(byte) || isDigit(byte)
        case UInt8(ascii: "x"):
            belongs = isDigit(byte) || (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "f"))
        default: return letter == byte
        }
        guard isLetter(letter) else { return letter == byte }
        return (letter & 0x20 == 0) != belongs
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z")
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") }
}

extension PatternMatcher.Reason {
    /// The reason as a text that lives for ever, as C needs it.
    var text: StaticString {
        switch self {
        case .endsWithPercent: "malformed pattern (ends with '%')"
        case .missingBracket: "malformed pattern (missing ']')"
        case .missingSet: "malformed pattern (missing '[' after '%f')"
        case .missingBalance: "malformed pattern (missing arguments to '%b')"
        case .unfinishedCapture: "malformed pattern (unfinished capture)"
        case .invalidCapture: "malformed pattern (invalid capture)"
        case .tooManyCaptures: "the pattern has more than 32 captures"
        case .tooComplex: "the pattern is too complex"
        }
    }
}
