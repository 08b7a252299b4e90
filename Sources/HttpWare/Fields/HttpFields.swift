// One file: each method keeps the bytes, the table of lines and the filters of names in agreement.

/// The field lines of one head or trailer section, in the order received. RFC 9110 §5, §6.3, §6.5.
///
/// All lines are in one byte buffer, as on the wire, with a table of offsets; Strings are made on demand. A line
/// is never moved: a removed line is marked, a new line is appended. So the lines as received stay readable (`received`),
/// and an unchanged message is copied out in one piece.
public struct HttpFields: Sendable {
    /// The place of a line in `bytes`, and its field.
    struct Line {
        /// The first byte of the name.
        var start: UInt32 = 0
        var valueStart: UInt32 = 0
        var valueCount: UInt32 = 0
        var nameCount: UInt16 = 0
        var known = KnownField.other
        var flags: UInt8 = 0

        /// The line is not part of the message any more.
        static let removed: UInt8 = 1
        /// The line is exactly `name: value` and CRLF, without other white space.
        static let exact: UInt8 = 2
        /// The line is meant for one hop: it is not in `received` either.
        static let hopByHop: UInt8 = 4
        /// A ware removed the line after accepting its value as a credential.
        static let accepted: UInt8 = 8

        @inline(__always) var isRemoved: Bool { flags & Line.removed != 0 }
        /// The place after the CRLF, for an exact line.
        @inline(__always) var end: UInt32 { valueStart &+ valueCount &+ 2 }
        /// A line as two words, to hold lines on the stack.
        typealias Words = SIMD2<UInt64>

        @inline(__always)
        static func words(
            start: UInt32, valueStart: UInt32, valueCount: UInt32, nameCount: UInt16, known: KnownField, flags: UInt8
        ) -> Words {
            unsafeBitCast(
                Line(
                    start: start, valueStart: valueStart, valueCount: valueCount, nameCount: nameCount, known: known,
                    flags: flags), to: Words.self)
        }

        @inline(__always) var name: Range<Int> { Int(start)..<Int(start) + Int(nameCount) }
        @inline(__always) var value: Range<Int> { Int(valueStart)..<Int(valueStart) + Int(valueCount) }
    }

    var bytes: [UInt8] = []
    var lines: [Line] = []
    /// The bits of all known fields that were ever here: a clear bit means that there is no such line.
    var present: UInt64 = 0
    /// The same for other names.
    var others = NameFilter()
    /// Differs after each change. It is mixed with the size, so that other fields with equally many changes have another number.
    private(set) var changes: UInt32 = 1
    /// The number of `lines` that came from the peer.
    var receivedCount = 0

    public init() {}

    /// Removes all lines and keeps the memory.
    mutating func reset() {
        if !bytes.isEmpty { bytes.removeAll(keepingCapacity: true) }
        if !lines.isEmpty { lines.removeAll(keepingCapacity: true) }
        present = 0
        others = NameFilter()
        changes = 0
        receivedCount = 0
    }

    /// Copies the other fields into the existing memory.
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

    /// Whether the peer may have sent a name with `_`; false is certain. A bit of `present`, because another stored
    /// property would make each copy of the fields a function call.
    public internal(set) var hasUnderscores: Bool {
        @inline(__always) get { present & HttpFields.underscoreBit != 0 }
        @inline(__always) set {
            present = newValue ? present | HttpFields.underscoreBit : present & ~HttpFields.underscoreBit
        }
    }
    /// A bit that no known field uses.
    private static let underscoreBit: UInt64 = 1 << 63

    // MARK: Reading

    /// The number of lines.
    public var count: Int { lines.count { !$0.isRemoved } }
    public var isEmpty: Bool { !lines.contains { !$0.isRemoved } }

    /// The field's value: that of its lines, joined by a comma and a space if there are several (RFC 9110 §5.3);
    /// `nil` without a line. `Set-Cookie` cannot be joined: read its `values`. Invalid UTF-8 is shown
    /// as U+FFFD; the message keeps the original bytes.
    ///
    /// Setting it replaces all lines of that name, and `nil` removes them. A value that no field can have, such as one with a line
    /// break, removes them too: use `set(_:to:)` for values of others, which throws then.
    public subscript(name: FieldName) -> String? {
        get {
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
        set {
            remove(name)
            if let newValue { try? append(name, newValue) }
        }
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

    /// The value of each line with this name, in order, as bytes: for comparing and resending values that might not be UTF-8.
    public func rawValues(of name: FieldName) -> [[UInt8]] {
        var result: [[UInt8]] = []
        var next = firstIndex(of: name)
        while let index = next {
            result.append(Array(bytes[lines[index].value]))
            next = self.index(of: name, from: index + 1)
        }
        return result
    }

    /// Each line with its value as bytes, in order; lines with invalid names are left out.
    public var rawLines: [(name: FieldName, value: [UInt8])] {
        lines.filter { !$0.isRemoved }.compactMap { line in
            FieldName(string(line.name)).map { ($0, Array(bytes[line.value])) }
        }
    }

    /// Whether there is exactly one line with this name, and its value has these bytes. Allocates nothing.
    public func isOnlyValue(_ value: [UInt8], of name: FieldName) -> Bool {
        guard let first = firstIndex(of: name), Int(lines[first].valueCount) == value.count,
            index(of: name, from: first + 1) == nil
        else { return false }
        return bytes.withUnsafeBufferPointer { all in
            value.withUnsafeBufferPointer { all[lines[first].value].elementsEqual($0) }
        }
    }

    /// The approximate length of the lines on the wire in bytes: removed lines count too.
    public var wireCount: Int { bytes.count }

    /// Whether there is a line with this name.
    public func contains(_ name: FieldName) -> Bool { firstIndex(of: name) != nil }

    /// The members of a comma-separated list field, over all its lines: without surrounding white space and
    /// without empty ones. Commas in quoted strings do not separate. RFC 9110 §5.6.1.
    public func listMembers(of name: FieldName) -> [String] {
        if firstIndex(of: name) == nil { return [] }
        return values(of: name).flatMap { FieldList.members(of: $0) }
    }

    /// Passes each line's name and value as bytes that are valid during the call only.
    public func forEachLine(_ body: (_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) -> Void) {
        bytes.withUnsafeBufferPointer { all in
            for line in lines where !line.isRemoved {
                body(.init(rebasing: all[line.name]), .init(rebasing: all[line.value]))
            }
        }
    }

    // MARK: Changing

    /// Replaces all lines with this name by one. Throws if the value is invalid.
    public mutating func set(_ name: FieldName, to value: String) throws(InvalidFieldValue) {
        try check(value, for: name)
        remove(name)
        appendLine(name, value.utf8)
    }

    /// Appends a line after the others. Throws if the value is invalid.
    public mutating func append(_ name: FieldName, _ value: String) throws(InvalidFieldValue) {
        try check(value, for: name)
        appendLine(name, value.utf8)
    }

    /// The same as `set(_:to:)` for a value that might not be UTF-8.
    public mutating func set(_ name: FieldName, toRaw value: [UInt8]) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value) else { throw InvalidFieldValue(name: name) }
        remove(name)
        appendLine(name, value)
    }

    /// The same as `append(_:_:)` for a value that might not be UTF-8.
    public mutating func append(_ name: FieldName, raw value: [UInt8]) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value) else { throw InvalidFieldValue(name: name) }
        appendLine(name, value)
    }

    /// Replaces all lines with the prepared line's name by it.
    public mutating func set(_ line: FieldLine) {
        remove(line.name)
        append(line)
    }

    /// Appends a prepared line after the others.
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

    /// Replaces all lines with this name by one whose value is a number.
    public mutating func set(_ name: FieldName, to number: Int) {
        remove(name)
        append(name) { $0.write(number) }
    }

    /// Appends a line after the others, whose value `write` writes from always valid parts: nothing is checked, and
    /// no intermediate text is built.
    public mutating func append(_ name: FieldName, write: (inout FieldValueWriter) -> Void) {
        appendLine(name) { FieldValueWriter.append(to: &$0, write) }
    }

    /// Replaces all lines with the block's names by the block's lines, in one piece.
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

    /// Appends the block's lines after the others, in one piece. `write` continues the value of the last line, as in
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

    /// Adds the block's lines, whose bytes begin at `start`.
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

    /// Renames all lines with one name, and removes all lines that had the other name before. Does nothing without such lines.
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

    /// Removes all lines with this name, and its twins (`removeTwins`). Returns whether there were any with the name.
    @discardableResult
    public mutating func remove(_ name: FieldName) -> Bool { remove(name, marking: Line.removed) }

    /// Removes all lines like `remove`, after their value was accepted as a credential: a key made of this field
    /// still finds it.
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

    /// Removes the lines that the peer sent under a twin of this name: the same name with `_` for `-`, or the reverse, in
    /// any combination. Lines with the name itself stay, and so do lines that wares added.
    ///
    /// CGI and many frameworks read `X_User` and `X-User` as one field (RFC 3875 §4.1.18). Removing or replacing a field
    /// also removes its twins; a ware that trusts a field as received must call this.
    @inline(__always)
    public mutating func removeTwins(of name: FieldName) {
        if hasUnderscores || name.hasUnderscore { takeTwins(of: name) }
    }

    /// Separate, because almost no messages have such names.
    @inline(never)
    private mutating func takeTwins(of name: FieldName) {
        for index in 0..<receivedCount where !lines[index].isRemoved && isTwin(lines[index], name) {
            noteChange()
            lines[index].flags |= Line.removed
        }
    }

    /// The values of the twins of this name that `removeTwins` would remove.
    func twinValues(of name: FieldName) -> [String] {
        guard hasUnderscores || name.hasUnderscore else { return [] }
        return lines.prefix(receivedCount).filter { !$0.isRemoved && isTwin($0, name) }.map {
            String(decoding: bytes[$0.value], as: UTF8.self)
        }
    }

    /// Whether the line's name is a twin of this one: they differ in `_` and `-`, and otherwise at most in case.
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

    /// Records whether the received lines have names with `_`, if no decoder did so.
    mutating func noteUnderscores() {
        hasUnderscores = lines.prefix(receivedCount).contains { bytes[$0.name].contains(0x5f) }
    }

    /// Not inlined, because callers rarely need it and would lose registers.
    @inline(never)
    private mutating func remove(_ names: [FieldName]) {
        for name in names { remove(name) }
    }

    // MARK: As received

    /// The lines from the peer, regardless of later changes; without hop-by-hop lines.
    public var received: HttpFields {
        var copy = self
        copy.lines.removeSubrange(receivedCount...)
        for index in copy.lines.indices where copy.lines[index].flags & Line.hopByHop == 0 {
            copy.lines[index].flags &= ~(Line.removed | Line.accepted)
        }
        return copy
    }

    /// The extent of the received lines: it identifies a message.
    struct Reception: Equatable {
        let lines: Int
        let bytes: UInt32
    }

    var reception: Reception {
        // The start of the last line: `takeCookies` may have replaced its value.
        Reception(lines: receivedCount, bytes: receivedCount == 0 ? 0 : lines[receivedCount - 1].start)
    }

    /// Whether nothing was changed since reception: `received` then equals this, until another message replaces it.
    var isAsReceived: Bool {
        guard lines.count == receivedCount else { return false }
        for line in lines where line.flags & (Line.removed | Line.hopByHop) == Line.removed { return false }
        return true
    }

    /// Passes the first value of the name as received, regardless of later changes, as bytes that are valid during the
    /// call only. Does nothing without one.
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

    /// Passes each value of the name as received, regardless of later changes, as bytes that are valid during the call
    /// only.
    public func forEachReceivedValue(of name: FieldName, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        guard mayHold(name) else { return }
        for line in lines.prefix(receivedCount) where line.flags & Line.hopByHop == 0 && isNamed(line, name) {
            bytes.withUnsafeBufferPointer { body(.init(rebasing: $0[line.value])) }
        }
    }

    /// Removes all lines with these names, in one pass. For names that decoders know; twins with `_` stay.
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

    /// Sets a value that the gateway makes of always valid characters, such as digits.
    mutating func setOwn(_ name: FieldName, _ value: String) {
        remove(name)
        appendLine(name, value.utf8)
    }

    /// Replaces a line's value in place; the value must be valid.
    mutating func setValue(_ value: [UInt8], ofLine index: Int) {
        noteChange()
        lines[index].valueStart = UInt32(truncatingIfNeeded: bytes.count)
        lines[index].valueCount = UInt32(truncatingIfNeeded: value.count)
        lines[index].flags &= ~Line.exact
        bytes.append(contentsOf: value)
        // The bytes between lines are never written, but each value must end like a line.
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

    /// Appends a line whose value the caller appends; the value must be valid.
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

    /// Adds lines whose bytes will be in the buffer, and whose names are already recorded in `present` and `others`.
    @inline(__always)
    mutating func append(_ more: Span<Line.Words>) {
        more.withUnsafeBufferPointer { words in
            words.withMemoryRebound(to: Line.self) { lines.append(contentsOf: $0) }
        }
    }

    /// Adds a line whose bytes are, or will be, in the buffer; with the trace of its name.
    @inline(__always)
    mutating func addLine(_ line: Line, others trace: NameFilter) {
        present |= line.known.bit
        others.add(trace)
        lines.append(line)
    }

    /// Whether there may be, or may have been, a line with that name; false is certain.
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

    /// The last line with that name that was removed as an accepted credential.
    func lastAccepted(_ name: FieldName) -> Int? {
        guard mayHold(name) else { return nil }
        return lines.lastIndex { $0.flags & Line.accepted != 0 && isNamed($0, name) }
    }

    func firstIndex(of name: FieldName) -> Int? { index(of: name, from: 0) }

    func firstIndex(of known: KnownField) -> Int? {
        guard present & known.bit != 0 else { return nil }
        return lines.firstIndex { $0.known == known && !$0.isRemoved }
    }

    /// The first line with that name, at or after `from`, that is part of the message.
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

    /// The number of occurrences of the text in the field's lines.
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
    /// Fields written in code; an invalid value is a programming error and traps.
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
