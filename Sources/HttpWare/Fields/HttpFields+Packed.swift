/// Field lines in a compact form that can be read back without parsing each line: a table of three to five bytes per line, then
/// the lines as `appendWire` writes them. For memory only: the reader trusts the writer.
extension HttpFields {
    /// Appends the lines in packed form. Returns false, and appends nothing, if there are too many lines or one is too long.
    public func appendPacked(to packed: inout [UInt8]) -> Bool {
        var kept = 0
        for line in lines where !line.isRemoved {
            guard line.valueCount <= UInt32(UInt16.max) else { return false }
            kept += 1
        }
        guard kept <= 255 else { return false }
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 1 + 5 * kept) { table in
            var count = 0
            func add(_ number: some FixedWidthInteger) {
                table[count] = UInt8(truncatingIfNeeded: number)
                count += 1
            }
            add(kept)
            for line in lines where !line.isRemoved {
                add(line.known.rawValue)
                add(line.valueCount)
                add(line.valueCount >> 8)
                guard line.known == .other else { continue }
                add(line.nameCount)
                add(line.nameCount >> 8)
            }
            packed.append(contentsOf: UnsafeBufferPointer(rebasing: table[..<count]))
        }
        appendWire(to: &packed)
        return true
    }

    /// The same for the lines as received, regardless of later changes.
    public func appendPackedReceived(to packed: inout [UInt8]) -> Bool {
        isAsReceived ? appendPacked(to: &packed) : received.appendPacked(to: &packed)
    }

    /// Passes the name and value of each line that `appendPacked` has written there, as bytes that are valid during the call only.
    public static func forEachLine(
        packed: UnsafeRawBufferPointer,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Void
    ) {
        let packed = packed.assumingMemoryBound(to: UInt8.self)
        let count = Int(packed[0])
        var entry = 1
        var start = 1
        for _ in 0..<count { start += packed[start] == KnownField.other.rawValue ? 5 : 3 }
        for _ in 0..<count {
            let known = packed[entry]
            let valueCount = Int(packed[entry + 1]) | Int(packed[entry + 2]) << 8
            entry += 3
            var nameCount = Int(nameCounts[Int(known)])
            if known == KnownField.other.rawValue {
                nameCount = Int(packed[entry]) | Int(packed[entry + 1]) << 8
                entry += 2
            }
            let value = start + nameCount + 2
            body(
                UnsafeBufferPointer(rebasing: packed[start..<start + nameCount]),
                UnsafeBufferPointer(rebasing: packed[value..<value + valueCount]))
            start = value + valueCount + 2
        }
    }

    /// Reads the result of `appendPacked` from there to the end. `spare` is the number of bytes and lines that the caller will
    /// append.
    public init(packed: [UInt8], from start: Int, sparing spare: (bytes: Int, lines: Int) = (0, 0)) {
        self.init()
        let count = Int(packed[start])
        lines.reserveCapacity(count + spare.lines)
        var entry = start + 1
        var offset: UInt32 = 0
        for _ in 0..<count {
            let known = KnownField(rawValue: packed[entry]) ?? .other
            let valueCount = UInt32(packed[entry + 1]) | UInt32(packed[entry + 2]) << 8
            entry += 3
            var nameCount = HttpFields.nameCounts[Int(known.rawValue)]
            if known == .other {
                nameCount = UInt16(packed[entry]) | UInt16(packed[entry + 1]) << 8
                entry += 2
            }
            let valueStart = offset &+ UInt32(nameCount) &+ 2
            lines.append(
                Line(
                    start: offset, valueStart: valueStart, valueCount: valueCount, nameCount: nameCount, known: known,
                    flags: Line.exact))
            present |= known.bit
            offset = valueStart &+ valueCount &+ 2
        }
        bytes.reserveCapacity(packed.count - entry + spare.bytes)
        bytes += packed[entry...]
        for line in lines where line.known == .other {
            others.add(NameFilter(bytes.span.bytes, from: Int(line.start), count: Int(line.nameCount)))
        }
    }

    /// The lengths of the known names, by their number.
    private static let nameCounts: [UInt16] = (0...KnownField.allCases.reduce(0) { Swift.max($0, $1.rawValue) }).map {
        UInt16(KnownField(rawValue: $0)?.name.utf8.count ?? 0)
    }
}
