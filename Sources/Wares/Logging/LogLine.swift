import HttpWare

/// Memory in which log lines are built. It belongs to one shard of a sink, to the sink's queue or to the writer, never to
/// two of them at once.
///
/// It grows to the length of a line, which the limits of heads bound.
final class LogBlock: @unchecked Sendable {
    // Unchecked: it is passed from shard to queue to writer, and used only by its current owner.

    static let size = 64 << 10

    fileprivate(set) var base: UnsafeMutableRawPointer
    fileprivate(set) var capacity: Int
    fileprivate(set) var count = 0
    /// The number of lines.
    var lines = 0

    init() {
        // A line may begin just below the size.
        capacity = LogBlock.size + 4096
        base = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { base.deallocate() }

    func clear() {
        count = 0
        lines = 0
    }

    /// The bytes that were written.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    /// Appends one line, including its line end.
    @inline(__always)
    func append(_ write: (inout LogLine) -> Void) {
        var line = LogLine(base: base, count: count, capacity: capacity)
        write(&line)
        base = line.base
        capacity = line.capacity
        count = line.count
        lines += 1
    }
}

/// Appends bytes, numbers and escaped texts to a block.
struct LogLine {
    private(set) var base: UnsafeMutableRawPointer
    private(set) var count: Int
    private(set) var capacity: Int

    fileprivate init(base: UnsafeMutableRawPointer, count: Int, capacity: Int) {
        self.base = base
        self.count = count
        self.capacity = capacity
    }

    /// Makes room for `more` bytes.
    @inline(__always)
    private mutating func reserve(_ more: Int) {
        if capacity &- count < more { grow(more) }
    }

    @inline(never)
    private mutating func grow(_ more: Int) {
        let larger = (count + more) * 2
        let grown = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
        grown.copyMemory(from: base, byteCount: count)
        base.deallocate()
        base = grown
        capacity = larger
    }

    // MARK: Unescaped

    @inline(__always)
    mutating func raw(_ text: StaticString) { raw(text.utf8Start, text.utf8CodeUnitCount) }

    @inline(__always)
    mutating func raw(_ bytes: UnsafeRawPointer, _ length: Int) {
        reserve(length)
        (base + count).copyMemory(from: bytes, byteCount: length)
        count &+= length
    }

    @inline(__always)
    mutating func raw(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { bytes in
            if let start = bytes.baseAddress { raw(start, bytes.count) }
        }
    }

    /// Begins a member of the current object, after a comma unless it is the first member.
    @inline(__always)
    mutating func member(_ key: StaticString) {
        separate()
        raw(key)
    }

    mutating func member(_ key: [UInt8]) {
        separate()
        raw(key)
    }

    /// Writes a member with a text. Writes nothing if the text is `nil`.
    @inline(__always)
    mutating func member(_ key: StaticString, _ value: String?) {
        guard let value else { return }
        member(key)
        json(value)
    }

    @inline(__always)
    mutating func member(_ key: StaticString, _ value: Int) {
        member(key)
        number(value)
    }

    @inline(__always)
    private mutating func separate() {
        if count > 0, (base + (count &- 1)).load(as: UInt8.self) != 0x7b { byte(0x2c) }
    }

    @inline(__always)
    mutating func byte(_ byte: UInt8) {
        reserve(1)
        base.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count &+= 1
    }

    // MARK: Numbers

    /// Writes a number in decimal digits; a negative one as 0.
    @inline(__always)
    mutating func number(_ number: Int) {
        reserve(20)
        var rest = UInt64(max(0, number))
        var digits = 1
        var bound: UInt64 = 10
        while rest >= bound && digits < 19 {
            digits &+= 1
            bound &*= 10
        }
        var index = count &+ digits
        count = index
        for _ in 0..<digits {
            index &-= 1
            base.storeBytes(of: UInt8(truncatingIfNeeded: rest % 10) &+ 0x30, toByteOffset: index, as: UInt8.self)
            rest /= 10
        }
    }

    /// Writes nanoseconds as milliseconds with three decimals: `1.234`.
    @inline(__always)
    mutating func milliseconds(nanoseconds: Int64) {
        let microseconds = Int(max(0, nanoseconds) / 1000)
        number(microseconds / 1000)
        byte(0x2e)
        digits3(microseconds % 1000)
    }

    /// Writes three digits.
    @inline(__always)
    mutating func digits3(_ number: Int) {
        byte(UInt8(truncatingIfNeeded: number / 100) &+ 0x30)
        byte(UInt8(truncatingIfNeeded: number / 10 % 10) &+ 0x30)
        byte(UInt8(truncatingIfNeeded: number % 10) &+ 0x30)
    }

    /// Writes an address without quotes.
    @inline(__always)
    mutating func address(_ address: IPAddress) {
        guard let bits = address.ipv4Bits else {
            // No escapes are needed: RFC 5952 uses only digits, letters and colons, and the index after `%` consists of
            // digits.
            var text = address.description
            text.withUTF8 { bytes in
                if let start = bytes.baseAddress { raw(start, bytes.count) }
            }
            return
        }
        number(Int(bits >> 24))
        byte(0x2e)
        number(Int(bits >> 16 & 0xff))
        byte(0x2e)
        number(Int(bits >> 8 & 0xff))
        byte(0x2e)
        number(Int(bits & 0xff))
    }

    // MARK: Escaped

    /// Writes a JSON string (RFC 8259 §7), including its quotes. Control characters, DEL and U+0080 … U+009F are escaped,
    /// so that a line cannot control a terminal. Text that is not UTF-8 is read as ISO 8859-1. RFC 9110 §5.5.
    @inline(__always)
    mutating func json(_ text: UnsafeBufferPointer<UInt8>) {
        byte(0x22)
        escaped(text, .json)
        byte(0x22)
    }

    @inline(__always)
    mutating func json(_ text: String) {
        var text = text
        text.withUTF8 { json($0) }
    }

    /// Writes a target as a JSON string. If it is not UTF-8, its bytes beyond ASCII are percent-encoded.
    mutating func json(target: UnsafeBufferPointer<UInt8>) {
        byte(0x22)
        escaped(target, .jsonTarget)
        byte(0x22)
    }

    /// Writes a text inside the quotes of a line that is not JSON. Quotes, backslashes and all bytes except visible ASCII
    /// become `\xHH`.
    mutating func plain(_ text: UnsafeBufferPointer<UInt8>) { escaped(text, .plain) }

    mutating func plain(_ text: String) {
        var text = text
        text.withUTF8 { plain($0) }
    }

    /// Writes one word of a line that is not JSON: as `plain`, with spaces as `\x20`.
    mutating func word(_ text: String) {
        for part in text.utf8.split(separator: 0x20, omittingEmptySubsequences: false).enumerated() {
            if part.offset > 0 { raw("\\x20") }
            plain(String(decoding: part.element, as: UTF8.self))
        }
    }

    private enum Escapes { case json, jsonTarget, plain }

    @inline(__always)
    private mutating func escaped(_ text: UnsafeBufferPointer<UInt8>, _ escapes: Escapes) {
        guard let source = UnsafeRawPointer(text.baseAddress) else { return }
        let length = text.count
        reserve(length &+ 8)
        var index = 0
        while index &+ 8 <= length {
            let word = source.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard LogLine.isClean(word) else { return escapedSlowly(source, index, length, escapes) }
            base.storeBytes(of: word, toByteOffset: count &+ index, as: UInt64.self)
            index &+= 8
        }
        while index < length {
            let byte = source.load(fromByteOffset: index, as: UInt8.self)
            guard byte >= 0x20, byte < 0x7f, byte != 0x22, byte != 0x5c else {
                return escapedSlowly(source, index, length, escapes)
            }
            base.storeBytes(of: byte, toByteOffset: count &+ index, as: UInt8.self)
            index &+= 1
        }
        count &+= length
    }

    /// Whether all eight bytes are visible ASCII or spaces, without quotes and backslashes.
    @inline(__always)
    private static func isClean(_ word: UInt64) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let high: UInt64 = 0x8080_8080_8080_8080
        let quote = word ^ (ones &* 0x22)
        let backslash = word ^ (ones &* 0x5c)
        let delete = word ^ (ones &* 0x7f)
        let found =
            word | (word &- ones &* 0x20) | ((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash)
            | ((delete &- ones) & ~delete)
        return found & high == 0
    }

    /// Escapes bytes one at a time. The first `start` bytes were copied already, but not counted.
    @inline(never)
    private mutating func escapedSlowly(
        _ source: UnsafeRawPointer, _ start: Int, _ length: Int, _ escapes: Escapes
    ) {
        count &+= start
        reserve((length - start) * 6)
        let isJson = escapes != .plain
        let whole = UnsafeRawBufferPointer(start: source, count: length)
        let isUtf8 = isJson && String(validating: whole, as: UTF8.self) != nil
        var index = start
        while index < length {
            let byte = source.load(fromByteOffset: index, as: UInt8.self)
            index += 1
            switch byte {
            case 0x22 where isJson, 0x5c where isJson:
                self.byte(0x5c)
                self.byte(byte)
            case 0x20...0x21, 0x23...0x5b, 0x5d...0x7e: self.byte(byte)
            case 0xc2 where isUtf8:
                // The second byte exists, because the text is well formed. U+0080 … U+009F are control characters.
                let next = whole[index]
                index += 1
                if next < 0xa0 {
                    raw("\\u00")
                    hex(next)
                } else {
                    self.byte(byte)
                    self.byte(next)
                }
            case 0x80... where isUtf8: self.byte(byte)
            case 0x80... where escapes == .jsonTarget:
                self.byte(0x25)
                self.byte(Hex.upper(byte >> 4))
                self.byte(Hex.upper(byte & 15))
            case 0xa0... where isJson:
                // ISO 8859-1 as UTF-8.
                self.byte(0xc0 | byte >> 6)
                self.byte(0x80 | byte & 0x3f)
            default:
                if isJson { raw("\\u00") } else { raw("\\x") }
                hex(byte)
            }
        }
    }

    private mutating func hex(_ byte: UInt8) {
        self.byte(Hex.lower(byte >> 4))
        self.byte(Hex.lower(byte & 15))
    }
}
