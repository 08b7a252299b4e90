/// The bytes of a record are damaged.
struct DamagedRecord: Error {}

/// Writes the values of a record in sequence.
struct RecordWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving count: Int = 0) { bytes.reserveCapacity(count) }

    /// Groups of seven bits, the lowest first. Small numbers of both signs are short.
    mutating func number(_ value: Int64) {
        var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func number(_ value: Int) { number(Int64(value)) }

    mutating func flag(_ value: Bool) { bytes.append(value ? 1 : 0) }

    mutating func data(_ data: UnsafeRawBufferPointer) {
        number(data.count)
        bytes.append(contentsOf: data)
    }

    mutating func data(_ data: [UInt8]) {
        number(data.count)
        bytes += data
    }

    mutating func text(_ text: String) {
        number(text.utf8.count)
        bytes += text.utf8
    }

    mutating func optional<Value>(_ value: Value?, _ write: (inout RecordWriter, Value) -> Void) {
        flag(value != nil)
        if let value { write(&self, value) }
    }

    mutating func optional(_ text: String?) { optional(text) { $0.text($1) } }

    mutating func list<Values: Collection>(
        _ values: Values, _ write: (inout RecordWriter, Values.Element) -> Void
    ) {
        number(values.count)
        for value in values { write(&self, value) }
    }
}

/// Reads the values of a record. No content of a file takes more memory than the file has bytes.
struct RecordReader {
    private let bytes: UnsafeRawBufferPointer
    private var at = 0

    /// `bytes` must outlive the reader.
    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var isAtEnd: Bool { at == bytes.count }

    mutating func number() throws(DamagedRecord) -> Int {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while true {
            guard at < bytes.count, shift < 64 else { throw DamagedRecord() }
            let byte = bytes[at]
            at += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { break }
            shift += 7
        }
        return Int(truncatingIfNeeded: value >> 1) ^ -Int(truncatingIfNeeded: value & 1)
    }

    /// A count of items that follow. It cannot exceed the remaining bytes.
    mutating func count() throws(DamagedRecord) -> Int {
        let value = try number()
        guard value >= 0, value <= bytes.count - at else { throw DamagedRecord() }
        return value
    }

    mutating func flag() throws(DamagedRecord) -> Bool {
        guard at < bytes.count, bytes[at] < 2 else { throw DamagedRecord() }
        defer { at += 1 }
        return bytes[at] == 1
    }

    mutating func piece() throws(DamagedRecord) -> UnsafeRawBufferPointer {
        let count = try count()
        defer { at += count }
        return UnsafeRawBufferPointer(rebasing: bytes[at..<at + count])
    }

    mutating func data() throws(DamagedRecord) -> [UInt8] { Array(try piece()) }

    mutating func text() throws(DamagedRecord) -> String { String(decoding: try piece(), as: UTF8.self) }

    /// A text that occurs in many records.
    mutating func text(_ pool: inout TextPool) throws(DamagedRecord) -> String { pool.text(try piece()) }

    mutating func optional<Value>(
        _ read: (inout RecordReader) throws(DamagedRecord) -> Value
    ) throws(DamagedRecord) -> Value? {
        try flag() ? try read(&self) : nil
    }

    mutating func list<Value>(
        _ read: (inout RecordReader) throws(DamagedRecord) -> Value
    ) throws(DamagedRecord) -> [Value] {
        let count = try count()
        if count == 0 { return [] }
        var values: [Value] = []
        values.reserveCapacity(min(count, 1024))
        for _ in 0..<count { values.append(try read(&self)) }
        return values
    }
}

/// The texts that were read last. Most rows repeat the texts of others, which then share their memory.
struct TextPool {
    private var texts = [String](repeating: "", count: 256)

    mutating func text(_ bytes: UnsafeRawBufferPointer) -> String {
        guard bytes.count > 15, bytes.count < 256 else { return String(decoding: bytes, as: UTF8.self) }
        let place = (Int(bytes[bytes.count - 1]) &* 31 &+ Int(bytes[bytes.count / 2]) &* 7 &+ bytes.count) & 255
        let isSame = texts[place].utf8.withContiguousStorageIfAvailable { known in
            known.count == bytes.count && known.elementsEqual(bytes)
        }
        if isSame == true { return texts[place] }
        let text = String(decoding: bytes, as: UTF8.self)
        texts[place] = text
        return text
    }
}
