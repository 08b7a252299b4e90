/// The field lines of one head or trailer section, in the order received. RFC 9110 §5, §6.3, §6.5.
///
/// All lines are in one byte buffer, as on the wire, behind a table of offsets; Strings are made when asked for. A line
/// is never moved: a removed one is marked, a new one is appended. So the lines as received stay readable (`received`),
/// and a message that nobody changed is copied out in one piece.
public struct HttpFields: Sendable {
    /// Where a line is in `bytes`, and which field it is.
    struct Line {
        /// The first byte of the name.
        var start: UInt32
        var valueStart: UInt32
        var valueCount: UInt32
        var nameCount: UInt16
        var known: KnownField
        var flags: UInt8

        /// Not part of the message any more.
        static let removed: UInt8 = 1
        /// The line is `name: value` and CRLF without more or other white space.
        static let exact: UInt8 = 2
        /// Meant for one hop: it is not in `received` either.
        static let hopByHop: UInt8 = 4

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
    /// How many of `lines` came from the peer.
    var receivedCount = 0

    public init() {}

    /// Takes all lines away and keeps the memory.
    mutating func reset() {
        bytes.removeAll(keepingCapacity: true)
        lines.removeAll(keepingCapacity: true)
        present = 0
        receivedCount = 0
    }

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

    /// Whether there is a line with this name.
    public func contains(_ name: FieldName) -> Bool { firstIndex(of: name) != nil }

    /// The members of a field that is a comma-separated list, over all its lines: without the white space around them,
    /// without empty ones; commas in quoted strings separate nothing. RFC 9110 §5.6.1.
    public func listMembers(of name: FieldName) -> [String] {
        values(of: name).flatMap { FieldList.members(of: $0) }
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
        appendLine(name, value)
    }

    /// Adds a line behind the others. Throws when the value cannot stand in a field line.
    public mutating func append(_ name: FieldName, _ value: String) throws(InvalidFieldValue) {
        try check(value, for: name)
        appendLine(name, value)
    }

    /// Replaces all lines of the prepared line's name by it.
    public mutating func set(_ line: FieldLine) {
        remove(line.name)
        append(line)
    }

    /// Adds a prepared line behind the others.
    public mutating func append(_ line: FieldLine) {
        let start = UInt32(truncatingIfNeeded: bytes.count)
        bytes.append(contentsOf: line.wire)
        let nameCount = line.name.text.utf8.count
        addLine(
            Line(
                start: start, valueStart: start &+ UInt32(nameCount) &+ 2,
                valueCount: UInt32(line.wire.count - nameCount - 4), nameCount: UInt16(nameCount),
                known: line.name.known,
                flags: Line.exact))
    }

    /// Takes all lines of this name away. Answers whether there were any.
    @discardableResult
    public mutating func remove(_ name: FieldName) -> Bool {
        var next = firstIndex(of: name)
        let found = next != nil
        while let index = next {
            lines[index].flags |= Line.removed
            next = self.index(of: name, from: index + 1)
        }
        return found
    }

    // MARK: As received

    /// The lines that came from the peer, whatever was changed since; without those meant for one hop.
    public var received: HttpFields {
        var copy = self
        copy.lines.removeSubrange(receivedCount...)
        for index in copy.lines.indices where copy.lines[index].flags & Line.hopByHop == 0 {
            copy.lines[index].flags &= ~Line.removed
        }
        return copy
    }

    // MARK: Inside the module

    mutating func remove(_ known: KnownField) {
        guard present & known.bit != 0 else { return }
        for index in lines.indices where lines[index].known == known { lines[index].flags |= Line.removed }
    }

    /// A value that the gateway itself makes, of digits and the like.
    mutating func setOwn(_ name: FieldName, _ value: String) {
        remove(name)
        appendLine(name, value)
    }

    private func check(_ value: String, for name: FieldName) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value.utf8) else { throw InvalidFieldValue(name: name) }
    }

    private mutating func appendLine(_ name: FieldName, _ value: String) {
        let start = UInt32(truncatingIfNeeded: bytes.count)
        bytes.append(contentsOf: name.text.utf8)
        bytes.append(0x3a)
        bytes.append(0x20)
        let valueStart = UInt32(truncatingIfNeeded: bytes.count)
        bytes.append(contentsOf: value.utf8)
        let valueEnd = UInt32(truncatingIfNeeded: bytes.count)
        bytes.append(0x0d)
        bytes.append(0x0a)
        addLine(
            Line(
                start: start, valueStart: valueStart, valueCount: valueEnd &- valueStart,
                nameCount: UInt16(truncatingIfNeeded: name.text.utf8.count), known: name.known, flags: Line.exact))
    }

    @inline(__always)
    mutating func addLine(_ line: Line) {
        present |= line.known.bit
        lines.append(line)
    }

    func firstIndex(of name: FieldName) -> Int? { index(of: name, from: 0) }

    func firstIndex(of known: KnownField) -> Int? {
        guard present & known.bit != 0 else { return nil }
        return lines.firstIndex { $0.known == known && !$0.isRemoved }
    }

    /// The first line of that name at or behind `from` that is part of the message.
    private func index(of name: FieldName, from: Int) -> Int? {
        if name.known != .other {
            guard present & name.known.bit != 0 else { return nil }
            var index = from
            while index < lines.count {
                if lines[index].known == name.known && !lines[index].isRemoved { return index }
                index &+= 1
            }
            return nil
        }
        let count = name.text.utf8.count
        var index = from
        while index < lines.count {
            let line = lines[index]
            if Int(line.nameCount) == count, line.known == .other, !line.isRemoved, isSame(line.name, name.text) {
                return index
            }
            index &+= 1
        }
        return nil
    }

    private func isSame(_ range: Range<Int>, _ name: String) -> Bool {
        var index = range.lowerBound
        for byte in name.utf8 {
            guard ByteClass.lower(bytes[index]) == ByteClass.lower(byte) else { return false }
            index &+= 1
        }
        return true
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
