/// Field lines as one sequence of bytes, for storage: `Name: value` and CRLF, line after line. RFC 9112 §5.
extension HttpFields {
    /// The number of bytes that `appendWire` appends.
    public var lineBytes: Int {
        lines.reduce(0) { $1.isRemoved ? $0 : $0 + Int($1.nameCount) + Int($1.valueCount) + 4 }
    }

    /// Appends the lines to the bytes, without white space around values.
    public func appendWire(to wire: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { all in
            // Adjacent lines that are already in this form are copied together.
            var run = 0..<0
            for line in lines where !line.isRemoved {
                if line.flags & Line.exact != 0, Int(line.start) == run.upperBound {
                    run = run.lowerBound..<Int(line.end)
                    continue
                }
                wire.append(contentsOf: UnsafeBufferPointer(rebasing: all[run]))
                if line.flags & Line.exact != 0 {
                    run = Int(line.start)..<Int(line.end)
                    continue
                }
                run = 0..<0
                wire.append(contentsOf: UnsafeBufferPointer(rebasing: all[line.name]))
                wire.append(0x3a)
                wire.append(0x20)
                wire.append(contentsOf: UnsafeBufferPointer(rebasing: all[line.value]))
                LineEnd.append(to: &wire)
            }
            wire.append(contentsOf: UnsafeBufferPointer(rebasing: all[run]))
        }
    }

    /// Reads the output of `appendWire` in this range; `nil` for anything else, and for more lines than `most`. `spare` is the
    /// number of bytes and lines that the caller will append.
    public init?(
        wire: [UInt8], in range: Range<Int>, most: Int = .max, sparing spare: (bytes: Int, lines: Int) = (0, 0)
    ) {
        guard range.upperBound <= wire.count else { return nil }
        self.init()
        bytes.reserveCapacity(range.count + spare.bytes)
        bytes += wire[range]
        var start = 0
        while start < bytes.count {
            guard lines.count < most, let line = HttpFields.line(in: bytes, at: start) else { return nil }
            if lines.isEmpty { lines.reserveCapacity(Swift.min(most, 8) + spare.lines) }
            let trace =
                line.known == .other
                ? NameFilter(bytes.span.bytes, from: start, count: Int(line.nameCount)) : NameFilter()
            addLine(line, others: trace)
            start = Int(line.end)
        }
    }

    /// The line that begins there; `nil` if it is invalid or incomplete.
    private static func line(in bytes: [UInt8], at start: Int) -> Line? {
        var index = start
        while index < bytes.count, ByteClass.isToken(bytes[index]) { index += 1 }
        let nameCount = index - start
        guard nameCount > 0, nameCount <= Int(UInt16.max), index + 1 < bytes.count, bytes[index] == 0x3a,
            bytes[index + 1] == 0x20
        else { return nil }
        index += 2
        let valueStart = index
        while index < bytes.count, ByteClass.isFieldValue(bytes[index]) { index += 1 }
        guard LineEnd.stands(at: index, in: bytes) else { return nil }
        return Line(
            start: UInt32(start), valueStart: UInt32(valueStart), valueCount: UInt32(index - valueStart),
            nameCount: UInt16(nameCount),
            known: KnownField.identify(bytes.span.bytes, from: start, count: nameCount), flags: Line.exact)
    }
}
