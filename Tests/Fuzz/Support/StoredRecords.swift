@testable import HttpCaching
import HttpWare

/// Bytes that a disk or a Redis may hold under one of our keys.
extension Fuzzing {
    /// Reads the input as a record, as it is or – so that the checksum does not hide what is behind it – with the right one.
    /// A record that is taken is written and read again: the same bytes.
    public static func storedRecord(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        if let key = CacheKey(encodedWithParts: wire) {
            require(key.encoded == wire, "a key that was read is written otherwise")
        }
        var bytes = wire
        if choice & 1 == 0 {
            var sum = ByteWriter()
            sum.add(Checksum.of(wire))
            bytes += sum.bytes
        }
        guard let record = StoredRecord(bytes) else { return }
        require(record.length >= 0, "a length of \(record.length)")
        require(record.bytes == bytes, "what was read is written otherwise")
        checkLines(record.head.fields)
    }

    private static func checkLines(_ fields: HttpFields) {
        var again = HttpFields()
        for (name, value) in fields {
            guard let name = FieldName(name) else { continue }  // longer than one of ours may be
            if let line = try? FieldLine(name, value) { again.append(line) }
        }
        require(again.count <= fields.count, "more lines than there were")
    }
}
