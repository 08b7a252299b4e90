import Glibc
import HttpWare

/// The captured lines of a header or trailer section. Strings are created only when they are read.
///
/// One buffer holds all lines as `name: value` and a line feed, which is the form that filters search. Invalid UTF-8 is kept as
/// it is.
public struct CapturedFields: Sendable {
    /// The length of a line's name, and the end of the line without its line feed. A line begins after the previous one.
    private struct Line: Sendable, Equatable {
        var nameCount: UInt32
        var end: UInt32
    }

    /// All lines, as filters search them.
    private(set) var text: [UInt8] = []
    private var lines: [Line] = []

    public init() {}

    /// Reserves memory for lines with this total size.
    init(reserving lineCount: Int, bytes: Int) {
        text.reserveCapacity(bytes + 3 * lineCount)
        lines.reserveCapacity(lineCount)
    }

    /// Adds a line. Lines beyond 4 GiB are left out.
    public mutating func append(name: some Collection<UInt8>, value: some Collection<UInt8>) {
        guard text.count + name.count + value.count + 3 <= Int(UInt32.max) else { return }
        text.append(contentsOf: name)
        text.append(0x3a)
        text.append(0x20)
        text.append(contentsOf: value)
        lines.append(Line(nameCount: UInt32(name.count), end: UInt32(text.count)))
        text.append(0x0a)
    }

    /// The approximate memory in bytes.
    var memory: Int { lines.isEmpty ? 0 : 64 + text.capacity + 8 * lines.capacity }

    /// Passes the name and the value of each line, as bytes that are valid during the call only.
    public func forEachLine(_ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void) {
        text.withUnsafeBytes { text in
            var start = 0
            for line in lines {
                let nameEnd = start + Int(line.nameCount)
                body(
                    UnsafeRawBufferPointer(rebasing: text[start..<nameEnd]),
                    UnsafeRawBufferPointer(rebasing: text[nameEnd + 2..<Int(line.end)]))
                start = Int(line.end) + 1
            }
        }
    }

    // MARK: Parts

    private func start(_ place: Int) -> Int { place == 0 ? 0 : Int(lines[place - 1].end) + 1 }

    private func nameRange(_ place: Int) -> Range<Int> {
        let start = start(place)
        return start..<start + Int(lines[place].nameCount)
    }

    private func valueRange(_ place: Int) -> Range<Int> {
        nameRange(place).upperBound + 2..<Int(lines[place].end)
    }

    /// The index of the next line with a name, from an index on. `wanted` is in lower case; the case of the line's name is
    /// ignored.
    private func place(of wanted: UnsafeRawBufferPointer, from first: Int = 0) -> Int? {
        text.withUnsafeBytes { text in
            var start = first == 0 ? 0 : Int(lines[first - 1].end) + 1
            for place in first..<Swift.max(first, lines.count) {
                let line = lines[place]
                if Int(line.nameCount) == wanted.count {
                    let name = UnsafeRawBufferPointer(rebasing: text[start..<start + wanted.count])
                    if CapturedFields.isSame(name, wanted) { return place }
                }
                start = Int(line.end) + 1
            }
            return nil
        }
    }

    /// Whether a name equals another one, which is in lower case.
    static func isSame(_ name: UnsafeRawBufferPointer, _ lower: StaticString) -> Bool {
        isSame(name, UnsafeRawBufferPointer(start: lower.utf8Start, count: lower.utf8CodeUnitCount))
    }

    static func isSame(_ name: UnsafeRawBufferPointer, _ lower: UnsafeRawBufferPointer) -> Bool {
        guard name.count == lower.count else { return false }
        for place in 0..<name.count where CapturedMessage.lower(name[place]) != lower[place] { return false }
        return true
    }

    /// The values of a field, in order.
    func values(of name: String) -> [String] {
        var name = name.lowercased()
        return name.withUTF8 { name in
            var values: [String] = []
            var next = place(of: UnsafeRawBufferPointer(name))
            while let found = next {
                values.append(ReceivedText.text(text[valueRange(found)]))
                next = place(of: UnsafeRawBufferPointer(name), from: found + 1)
            }
            return values
        }
    }

    /// The value of the first line with this name at or after `next`, which then moves behind the line. `name` must be
    /// in lower case. `nil` if there is no such line.
    func nextValue(of name: StaticString, from next: inout Int) -> ArraySlice<UInt8>? {
        let wanted = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard next < lines.count, let found = place(of: wanted, from: next) else { return nil }
        next = found + 1
        return text[valueRange(found)]
    }

    /// Whether the media type of `Content-Type` equals this one in lower case, or begins with it. RFC 9110 §8.3.1.
    func hasMediaType(_ type: StaticString, isPrefix: Bool = false) -> Bool {
        withFirstValue(of: "content-type") { CapturedFields.isMediaType($0, type, isPrefix: isPrefix) } ?? false
    }

    /// The same for the value of a field.
    static func isMediaType(_ value: UnsafeRawBufferPointer, _ type: StaticString, isPrefix: Bool = false) -> Bool {
        let count = type.utf8CodeUnitCount
        guard value.count >= count, isSame(UnsafeRawBufferPointer(rebasing: value[..<count]), type) else {
            return false
        }
        return isPrefix || value.count == count || value[count] == 0x3b || value[count] <= 0x20
    }

    /// Whether content with these fields is read in the same way as with the others: its media type and its codings are equal.
    func isReadLike(_ other: CapturedFields) -> Bool {
        for name in ["content-type", "content-encoding"] as [StaticString] {
            var (next, otherNext) = (0, 0)
            while true {
                let (value, otherValue) = (
                    nextValue(of: name, from: &next), other.nextValue(of: name, from: &otherNext)
                )
                guard value == otherValue else { return false }
                if value == nil { break }
            }
        }
        return true
    }

    /// Reads the first value of a field in place; the bytes are valid only during the call. The name is in lower case. `nil` if
    /// the field is missing.
    func withFirstValue<Result>(
        of name: StaticString, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result? {
        let wanted = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        guard let place = place(of: wanted) else { return nil }
        let range = valueRange(place)
        return text.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }
}

extension CapturedFields: RandomAccessCollection, MutableCollection, RangeReplaceableCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { lines.count }

    public subscript(place: Int) -> CapturedMessage.Field {
        get {
            CapturedMessage.Field(
                String(decoding: text[nameRange(place)], as: UTF8.self), bytes: text[valueRange(place)])
        }
        set { replaceSubrange(place..<place + 1, with: [newValue]) }
    }

    public mutating func append(_ field: CapturedMessage.Field) {
        append(name: field.name.utf8, value: field.bytes)
    }

    public mutating func replaceSubrange(
        _ range: Range<Int>, with fields: some Collection<CapturedMessage.Field>
    ) {
        var changed = CapturedFields()
        for place in 0..<range.lowerBound { changed.append(self, place) }
        for field in fields { changed.append(field) }
        for place in range.upperBound..<lines.count { changed.append(self, place) }
        self = changed
    }

    private mutating func append(_ other: CapturedFields, _ place: Int) {
        append(name: other.text[other.nameRange(place)], value: other.text[other.valueRange(place)])
    }
}

extension CapturedFields: Equatable, ExpressibleByArrayLiteral {
    public init(arrayLiteral fields: CapturedMessage.Field...) { self.init(fields) }

    public static func == (left: CapturedFields, right: CapturedFields) -> Bool {
        guard left.text.count == right.text.count, left.lines.count == right.lines.count else { return false }
        let isSameText = left.text.withUnsafeBytes { left in
            right.text.withUnsafeBytes { right in
                guard let first = left.baseAddress, let other = right.baseAddress, first != other else { return true }
                return memcmp(first, other, left.count) == 0
            }
        }
        return isSameText && left.lines == right.lines
    }
}
