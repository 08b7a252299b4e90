// One file: each method keeps the bytes, the table of lines and the filters of names in agreement.

/// The field lines of one head or trailer section, in the order received. RFC 9110 §5, §6.3, §6.5.
///
/// All lines are in one byte buffer, as on the wire, behind a table of offsets; Strings are made when asked for. A line
/// is never moved: a removed one is marked, a new one is appended. So the lines as received stay readable (`received`),
/// and a message that nobody changed is copied out in one piece.
public struct HttpFields: Sendable {
    /// Where a line is in `bytes`, and which field it is.
    struct Line {
        /// The first byte of the name.
        var start: UInt32 = 0
        var valueStart: UInt32 = 0
        var valueCount: UInt32 = 0
        var nameCount: UInt16 = 0
        var known = KnownField.other
        var flags: UInt8 = 0

        /// Not part of the message any more.
        static let removed: UInt8 = 1
        /// The line is `name: value` and CRLF without more or other white space.
        static let exact: UInt8 = 2
        /// Meant for one hop: it is not in `received` either.
        static let hopByHop: UInt8 = 4
        /// Removed by a ware that accepted its value as a credential.
        static let accepted: UInt8 = 8

        @inline(__always) var isRemoved: Bool { flags & Line.removed != 0 }
        /// Behind the CRLF, for an exact line.
        @inline(__always) var end: UInt32 { valueStart &+ valueCount &+ 2 }
        @inline(__always) var name: Range<Int> { Int(start)..<Int(start) + Int(nameCount) }
        @inline(__always) var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueCount) }
    }

    var bytes: [UInt8] = []
    var lines: [Line] = []
    /// The bit of each known field that was ever here: a clear bit says that there is no such line.
    var present: UInt64 = 0
    /// The same for other names.
    var others = NameFilter()
    /// Another number after each change: mixed with the size, so that other fields with as many changes have another one.
    private(set) var changes: UInt32 = 1
    /// How many of `lines` came from the peer.
    var receivedCount = 0

    public init() {}

    /// Takes all lines away and keeps the memory.
    mutating func reset() {
        if !bytes.isEmpty { bytes.removeAll(keepingCapacity: true) }
        if !lines.isEmpty { lines.removeAll(keepingCapacity: true) }
        present = 0
        others = NameFilter()
        changes = 0
        receivedCount = 0
    }

    /// Becomes the same as another, in the memory that it has.
    mutating func copy(_ other: HttpFields) {
        bytes.removeAll(keepingCapacity: true)
        other.bytes.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        lines.removeAll(keepingCapacity: true)
        other.lines.withUnsafeBufferPointer { lines.append(contentsOf: $0) }
        present = other.present
        others = other.others
        changes = other.changes
        receivedCount = other.receivedCount
    }

    /// Whether the peer may have sent a name with `_` in it; false is certain. A bit of `present`, because one more stored
    /// property makes each copy of the fields a call.
    public internal(set) var hasUnderscores: Bool {
        @inline(__always) get { present & HttpFields.underscoreBit != 0 }
        @inline(__always) set {
            present = newValue ? present | HttpFields.underscoreBit : present & ~HttpFields.underscoreBit
        }
    }
    /// No known field has this number.
    private static let underscoreBit: UInt64 = 1 << 63

    // MARK: Reading

    /// How many lines there are.
    public var count: Int { lines.count { !$0.isRemoved } }
    public var isEmpty: Bool { !lines.contains { !$0.isRemoved } }

    /// The field's value: that of its lines, joined by a comma and a space when there are several (RFC 9110 §5.3);
    /// `nil` when there is none. `Set-Cookie` cannot be joined: read its `values`. Bytes that are no UTF-8 come
    /// out as U+FFFD; the message keeps them.
    public subscript(name: FieldName) -> String? {
        guard let first = firstIndex(of: name) else { return nil }
        var result = string(lines[first].value)
        var next = index(of: name, from: first + 1)
        while let index = next {
            result += ", "
            result += string(lines[index].value)
            next = self.index(of: name, from: index + 1)
        }
        return result
    }

    /// The value of each line with this name, in order.
    public func values(of name: FieldName) -> [String] {
        var result: [String] = []
        var next = firstIndex(of: name)
        while let index = next {
            result.append(string(lines[index].value))
            next = self.index(of: name, from: index + 1)
        }
        return result
    }

    /// The value of each line with this name, in order, as bytes: to compare and to send again what may not be UTF-8.
    public func rawValues(of name: FieldName) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var next = firstIndex(of: name)
        while let index = next {
            result.append(Array(bytes[lines[index].value]))
            next = self.index(of: name, from: index + 1)
        }
        return result
    }

    /// Whether there is one line of this name, and these bytes are its value. Allocates nothing.
    public func isOnlyValue(_ value: [UInt8], of name: FieldName) -> Bool {
        guard let first = firstIndex(of: name), Int(lines[first].valueCount) == value.count,
            index(of: name, from: first + 1) == nil
        else { return false }
        return bytes.withUnsafeBufferPointer { all in
            value.withUnsafeBufferPointer { all[lines[first].value].elementsEqual($0) }
        }
    }

    /// How many bytes the lines take as they go over the wire, roughly: lines that were removed count too.
    public var wireCount: Int { bytes.count }

    /// Whether there is a line with this name.
    public func contains(_ name: FieldName) -> Bool { firstIndex(of: name) != nil }

    /// The members of a field that is a comma-separated list, over all its lines: without the white space around them,
    /// without empty ones; commas in quoted strings separate nothing. RFC 9110 §5.6.1.
    public func listMembers(of name: FieldName) -> [String] {
        if firstIndex(of: name) == nil { return [] }
        return values(of: name).flatMap { FieldList.members(of: $0) }
    }

    /// Gives each line's name and value as bytes that are valid during the call only.
    public func forEachLine(_ body: (_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Void) {
        bytes.withUnsafeBufferPointer { all in
            for line in lines where !line.isRemoved {
                body(.init(rebasing: all[line.name]), .init(rebasing: all[line.value]))
            }
        }
    }

    // MARK: Changing

    /// Replaces all lines of this name by one. Throws when the value cannot stand in a field line.
    public mutating func set(_ name: FieldName, to value: String) throws(InvalidFieldValue) {
        try check(value, for: name)
        remove(name)
        appendLine(name, value.utf8)
    }

    /// Adds a line behind the others. Throws when the value cannot stand in a field line.
    public mutating func append(_ name: FieldName, _ value: String) throws(InvalidFieldValue) {
        try check(value, for: name)
        appendLine(name, value.utf8)
    }

    /// The same for a value that may not be UTF-8.
    public mutating func set(_ name: FieldName, toRaw value: [UInt8]) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value) else { throw InvalidFieldValue(name: name) }
        remove(name)
        appendLine(name, value)
    }

    /// The same for a value that may not be UTF-8.
    public mutating func append(_ name: FieldName, raw value: [UInt8]) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value) else { throw InvalidFieldValue(name: name) }
        appendLine(name, value)
    }

    /// Replaces all lines of the prepared line's name by it.
    public mutating func set(_ line: FieldLine) {
        remove(line.name)
        append(line)
    }

    /// Adds a prepared line behind the others.
    public mutating func append(_ line: FieldLine) {
        noteChange()
        let start = UInt32(truncatingIfNeeded: bytes.count)
        line.wire.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        let nameCount = line.name.text.utf8.count
        addLine(
            Line(
                start: start, valueStart: start &+ UInt32(nameCount) &+ 2,
                valueCount: UInt32(line.wire.count - nameCount - 4), nameCount: UInt16(nameCount),
                known: line.name.known,
                flags: Line.exact), others: line.name.trace)
    }

    /// Replaces all lines of this name by one whose value is a number.
    public mutating func set(_ name: FieldName, to number: Int) {
        remove(name)
        append(name) { $0.write(number) }
    }

    /// Adds a line behind the others whose value `write` writes, of what may stand in every value: nothing is checked, and
    /// nothing put together before.
    public mutating func append(_ name: FieldName, write: (inout FieldValueWriter) -> Void) {
        appendLine(name) { FieldValueWriter.append(to: &$0, write) }
    }

    /// Replaces all lines of the block's names by the block's lines, in one piece.
    public mutating func set(_ block: FieldBlock) {
        if present & block.present & ~KnownField.other.bit != 0 || others.mayHold(block.others) || hasUnderscores
            || block.hasUnderscores
        {
            remove(block.names)
        }
        noteChange()
        let start = UInt32(truncatingIfNeeded: bytes.count)
        block.wire.withUnsafeBufferPointer { bytes.append(contentsOf: $0) }
        addLines(of: block, from: start)
    }

    /// Adds the block's lines behind the others, in one piece; the value of the last goes on with what `write` writes, as in
    /// `append(_:write:)`.
    public mutating func append(_ block: FieldBlock, write: (inout FieldValueWriter) -> Void) {
        guard !block.isEmpty else { return }
        noteChange()
        let start = UInt32(truncatingIfNeeded: bytes.count)
        block.wire.withUnsafeBufferPointer { bytes.append(contentsOf: $0.dropLast(2)) }
        let valueEnd = bytes.count
        FieldValueWriter.append(to: &bytes) {
            write(&$0)
            $0.write(LineEnd.text)
        }
        addLines(of: block, from: start)
        lines[lines.count - 1].valueCount &+= UInt32(truncatingIfNeeded: bytes.count - 2 - valueEnd)
    }

    /// Adds the block's lines, whose bytes begin there.
    @inline(__always)
    private mutating func addLines(of block: FieldBlock, from start: UInt32) {
        present |= block.present
        others.add(block.others)
        for index in block.lines.indices {
            var line = block.lines[index]
            line.start &+= start
            line.valueStart &+= start
            lines.append(line)
        }
    }

    /// Gives each line of one name another name, in place of all lines that had it. Does nothing if there is none.
    public mutating func rename(_ name: FieldName, to other: FieldName) {
        removeTwins(of: name)
        guard name != other, let first = firstIndex(of: name) else { return }
        noteChange()
        remove(other)
        var next: Int? = first
        while let index = next {
            lines[index].flags |= Line.removed
            let value = Array(bytes[lines[index].value])
            appendLine(other, value)
            next = self.index(of: name, from: index + 1)
        }
    }

    /// Takes all lines of this name away, and its twins with them (`removeTwins`). Answers whether there were any of the name.
    @discardableResult
    public mutating func remove(_ name: FieldName) -> Bool { remove(name, marking: Line.removed) }

    /// Takes all lines of this name away, as `remove` does, after their value was accepted as a credential: a key that tells
    /// requests apart by this field still finds it.
    public mutating func removeAccepted(_ name: FieldName) { remove(name, marking: Line.removed | Line.accepted) }

    @discardableResult
    @inline(__always)
    private mutating func remove(_ name: FieldName, marking flags: UInt8) -> Bool {
        var next = firstIndex(of: name)
        let found = next != nil
        if found { noteChange() }
        while let index = next {
            lines[index].flags |= flags
            next = self.index(of: name, from: index + 1)
        }
        removeTwins(of: name)
        return found
    }

    /// Takes away the lines that the peer sent under a twin of this name: the same name with `_` for `-`, or the reverse, in
    /// any mix. Lines of the name itself stay, and so do lines that wares added.
    ///
    /// CGI and many frameworks read `X_User` and `X-User` as one field (RFC 3875 §4.1.18). To remove or to replace a field
    /// takes its twins away, too; a ware that trusts a field as it was received calls this.
    @inline(__always)
    public mutating func removeTwins(of name: FieldName) {
        if hasUnderscores || name.hasUnderscore { takeTwins(of: name) }
    }

    /// Apart from messages without such names, which are nearly all.
    @inline(never)
    private mutating func takeTwins(of name: FieldName) {
        for index in 0..<receivedCount where !lines[index].isRemoved && isTwin(lines[index], name) {
            noteChange()
            lines[index].flags |= Line.removed
        }
    }

    /// Whether the line's name is another spelling of this one: they differ in `_` and `-`, and but for case in nothing else.
    private func isTwin(_ line: Line, _ name: FieldName) -> Bool {
        guard Int(line.nameCount) == name.text.utf8.count else { return false }
        var isOther = false
        var index = Int(line.start)
        for byte in name.text.utf8 {
            let own = bytes[index]
            index &+= 1
            if ByteClass.lower(own) == ByteClass.lower(byte) { continue }
            guard own == 0x5f && byte == 0x2d || own == 0x2d && byte == 0x5f else { return false }
            isOther = true
        }
        return isOther
    }

    /// Notes whether the lines that were received have names with `_`, where no decoder has done so.
    mutating func noteUnderscores() {
        hasUnderscores = lines.prefix(receivedCount).contains { bytes[$0.name].contains(0x5f) }
    }

    /// Apart from those who rarely need it, whose registers it would take.
    @inline(never)
    private mutating func remove(_ names: [FieldName]) {
        for name in names { remove(name) }
    }

    // MARK: As received

    /// The lines that came from the peer, whatever was changed since; without those meant for one hop.
    public var received: HttpFields {
        var copy = self
        copy.lines.removeSubrange(receivedCount...)
        for index in copy.lines.indices where copy.lines[index].flags & Line.hopByHop == 0 {
            copy.lines[index].flags &= ~(Line.removed | Line.accepted)
        }
        return copy
    }

    /// What came from the peer: how much of it there is tells one message from another.
    struct Reception: Equatable {
        let lines: Int
        let bytes: UInt32
    }

    var reception: Reception {
        // Where the last line begins: its value may be another one since (`takeCookies`).
        Reception(lines: receivedCount, bytes: receivedCount == 0 ? 0 : lines[receivedCount - 1].start)
    }

    /// Whether nothing was changed since it came: then `received` is the same as this, until another message takes its place.
    var isAsReceived: Bool {
        guard lines.count == receivedCount else { return false }
        for line in lines where line.flags & (Line.removed | Line.hopByHop) == Line.removed { return false }
        return true
    }

    /// Gives the first value of the name as it was received, whatever was changed since, as bytes that are valid during the
    /// call only. Does nothing when there was none.
    public func withReceivedValue(of name: FieldName, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        guard mayHold(name) else { return }
        var index = 0
        while index < receivedCount {
            let line = lines[index]
            if line.flags & Line.hopByHop == 0, isNamed(line, name) {
                bytes.withUnsafeBufferPointer { body(.init(rebasing: $0[line.value])) }
                return
            }
            index &+= 1
        }
    }

    /// Gives each value of the name as it was received, whatever was changed since, as bytes that are valid during the call
    /// only.
    public func forEachReceivedValue(of name: FieldName, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        guard mayHold(name) else { return }
        for line in lines.prefix(receivedCount) where line.flags & Line.hopByHop == 0 && isNamed(line, name) {
            bytes.withUnsafeBufferPointer { body(.init(rebasing: $0[line.value])) }
        }
    }

    /// Takes all lines of these names away, in one pass. Of names that decoders know; twins with `_` stay.
    public mutating func remove(_ names: KnownFields) {
        guard mayContain(names) else { return }
        for index in lines.indices where lines[index].known.bit & names.bits != 0 && !lines[index].isRemoved {
            noteChange()
            lines[index].flags |= Line.removed
        }
    }

    // MARK: Inside the module

    mutating func remove(_ known: KnownField) {
        guard present & known.bit != 0 else { return }
        noteChange()
        for index in lines.indices where lines[index].known == known { lines[index].flags |= Line.removed }
    }

    /// A value that the gateway itself makes, of digits and the like.
    mutating func setOwn(_ name: FieldName, _ value: String) {
        remove(name)
        appendLine(name, value.utf8)
    }

    /// Gives a line another value, which may stand there, in its place among the others.
    mutating func setValue(_ value: [UInt8], ofLine index: Int) {
        noteChange()
        lines[index].valueStart = UInt32(truncatingIfNeeded: bytes.count)
        lines[index].valueCount = UInt32(truncatingIfNeeded: value.count)
        lines[index].flags &= ~Line.exact
        bytes.append(contentsOf: value)
        // The room between lines is never written, but each line ends like one.
        LineEnd.append(to: &bytes)
    }

    private func check(_ value: String, for name: FieldName) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value) else { throw InvalidFieldValue(name: name) }
    }

    @inline(__always)
    mutating func noteChange() {
        changes = (changes ^ UInt32(truncatingIfNeeded: bytes.count)) &* 0x9e37_79b1 &+ 1
    }

    @inline(__always)
    mutating func appendLine(_ name: FieldName, _ value: some Collection<UInt8>) {
        appendLine(name) { $0.append(contentsOf: value) }
    }

    /// Adds a line whose value the caller appends, as bytes that may stand there.
    @inline(__always)
    private mutating func appendLine(_ name: FieldName, value: (inout [UInt8]) -> Void) {
        noteChange()
        let start = UInt32(truncatingIfNeeded: bytes.count)
        var text = name.text
        text.withUTF8 { bytes.append(contentsOf: $0) }
        bytes.append(0x3a)
        bytes.append(0x20)
        let valueStart = UInt32(truncatingIfNeeded: bytes.count)
        value(&bytes)
        let valueEnd = UInt32(truncatingIfNeeded: bytes.count)
        LineEnd.append(to: &bytes)
        addLine(
            Line(
                start: start, valueStart: valueStart, valueCount: valueEnd &- valueStart,
                nameCount: UInt16(truncatingIfNeeded: text.utf8.count), known: name.known, flags: Line.exact),
            others: name.trace)
    }

    /// Adds lines whose bytes will be in the buffer, and whose names are noted in `present` and `others` already.
    @inline(__always)
    mutating func append(_ more: Span<Line>) {
        more.withUnsafeBufferPointer { lines.append(contentsOf: $0) }
    }

    /// Adds a line whose bytes are, or will be, in the buffer; with the trace of its name.
    @inline(__always)
    mutating func addLine(_ line: Line, others trace: NameFilter) {
        present |= line.known.bit
        others.add(trace)
        lines.append(line)
    }

    /// Whether there may be a line of that name, or may have been one; false is certain.
    @inline(__always)
    private func mayHold(_ name: FieldName) -> Bool {
        present & name.known.bit != 0 && (name.known != .other || others.mayHold(name.trace))
    }

    @inline(__always)
    private func isNamed(_ line: Line, _ name: FieldName) -> Bool {
        line.known == name.known
            && (name.known != .other
                || Int(line.nameCount) == name.text.utf8.count && isSame(line.name, name))
    }

    /// The line of that name that was taken away last as a credential that was accepted.
    func lastAccepted(_ name: FieldName) -> Int? {
        guard mayHold(name) else { return nil }
        return lines.lastIndex { $0.flags & Line.accepted != 0 && isNamed($0, name) }
    }

    func firstIndex(of name: FieldName) -> Int? { index(of: name, from: 0) }

    func firstIndex(of known: KnownField) -> Int? {
        guard present & known.bit != 0 else { return nil }
        return lines.firstIndex { $0.known == known && !$0.isRemoved }
    }

    /// The first line of that name at or behind `from` that is part of the message.
    func index(of name: FieldName, from: Int) -> Int? {
        guard mayHold(name) else { return nil }
        var index = from
        while index < lines.count {
            if !lines[index].isRemoved, isNamed(lines[index], name) { return index }
            index &+= 1
        }
        return nil
    }

    private func isSame(_ range: Range<Int>, _ name: FieldName) -> Bool {
        guard ByteClass.lower(bytes[range.upperBound &- 1]) == name.last else { return false }
        var index = range.lowerBound
        for byte in name.text.utf8 {
            guard ByteClass.lower(bytes[index]) == ByteClass.lower(byte) else { return false }
            index &+= 1
        }
        return true
    }

    /// How often the text occurs in the field's lines.
    func occurrences(of text: StaticString, in known: KnownField) -> Int {
        guard present & known.bit != 0 else { return 0 }
        let count = text.utf8CodeUnitCount
        var found = 0
        bytes.withUnsafeBufferPointer { all in
            for line in lines where line.known == known && !line.isRemoved {
                var index = line.value.lowerBound
                while index + count <= line.value.upperBound {
                    if all[index] == text.utf8Start[0],
                        (1..<count).allSatisfy({ all[index + $0] == text.utf8Start[$0] })
                    {
                        found += 1
                        index += count
                    } else {
                        index += 1
                    }
                }
            }
        }
        return found
    }

    func string(_ range: Range<Int>) -> String {
        bytes.withUnsafeBufferPointer { String(decoding: $0[range], as: UTF8.self) }
    }
}

extension HttpFields: ExpressibleByDictionaryLiteral {
    /// Fields written in code; a value that is not allowed is a mistake of the code and traps.
    public init(dictionaryLiteral elements: (FieldName, StaticString)...) {
        self.init()
        for (name, value) in elements {
            guard (try? append(name, "\(value)")) != nil else { preconditionFailure("not a field value") }
        }
    }
}

extension HttpFields: Sequence {
    /// Each line's name and value, in order.
    public func makeIterator() -> AnyIterator<(name: String, value: String)> {
        var index = 0
        return AnyIterator {
            while index < lines.count, lines[index].isRemoved { index += 1 }
            guard index < lines.count else { return nil }
            defer { index += 1 }
            return (string(lines[index].name), string(lines[index].value))
        }
    }
}

extension HttpFields: CustomStringConvertible {
    public var description: String { map { "\($0.name): \($0.value)" }.joined(separator: "\n") }
}
