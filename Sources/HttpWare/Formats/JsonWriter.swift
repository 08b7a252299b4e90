/// Writes JSON (RFC 8259) member by member: for objects of which many are written, because no value is made in between.
package struct JsonWriter {
    /// The JSON so far, in UTF-8.
    package private(set) var bytes: [UInt8] = []
    /// Whether the next member or element is the first one.
    private var isFirst = true

    package init(reserving count: Int) { bytes.reserveCapacity(count) }

    /// Continues an object: `bytes` are JSON without the end of that object, which has members already.
    package init(continuing bytes: [UInt8]) {
        self.bytes = bytes
        isFirst = false
    }

    /// Writes an object, alone or in a list.
    package mutating func object(_ write: (inout JsonWriter) -> Void) {
        begin()
        nest(0x7b, 0x7d, write)
    }

    /// Writes a member whose value is an object.
    package mutating func object(_ name: StaticString, _ write: (inout JsonWriter) -> Void) {
        begin(name)
        nest(0x7b, 0x7d, write)
    }

    /// Writes a member whose value is a list, of which `write` writes the elements.
    package mutating func list(_ name: StaticString, _ write: (inout JsonWriter) -> Void) {
        begin(name)
        nest(0x5b, 0x5d, write)
    }

    /// Writes a member, unless its value is `nil`; the same for those below.
    package mutating func text(_ name: StaticString, _ value: String?) {
        guard let value else { return }
        begin(name)
        value.writeJson(to: &bytes)
    }

    package mutating func texts(_ name: StaticString, _ values: [String]?) {
        guard let values else { return }
        list(name) { list in for value in values { list.element(value) } }
    }

    package mutating func number(_ name: StaticString, _ value: Int?) {
        guard let value else { return }
        begin(name)
        Json.write(value, to: &bytes)
    }

    /// A member with three decimals.
    package mutating func decimal(_ name: StaticString, _ value: Double) {
        begin(name)
        Json.write(decimal: value, to: &bytes)
    }

    package mutating func flag(_ name: StaticString, _ value: Bool?) {
        guard let value else { return }
        begin(name)
        bytes += (value ? "true" : "false").utf8
    }

    /// Writes a list within a list.
    package mutating func list(_ write: (inout JsonWriter) -> Void) {
        begin()
        nest(0x5b, 0x5d, write)
    }

    /// Writes a text within a list.
    package mutating func element(_ value: String) {
        begin()
        value.writeJson(to: &bytes)
    }

    /// Writes a list of two received texts within a list. Invalid UTF-8 is read as ISO 8859-1.
    package mutating func pair(_ first: UnsafeBufferPointer<UInt8>, _ second: UnsafeBufferPointer<UInt8>) {
        begin()
        bytes.append(0x5b)
        write(received: first)
        bytes.append(0x2c)
        write(received: second)
        bytes.append(0x5d)
    }

    private mutating func write(received text: UnsafeBufferPointer<UInt8>) {
        if text.allSatisfy({ $0 < 0x80 }) || String(validating: text, as: UTF8.self) != nil {
            JsonString.write(text, to: &bytes)
        } else {
            ReceivedText.text(text).writeJson(to: &bytes)
        }
    }

    /// Writes a member whose value is a text in UTF-8.
    package mutating func text(_ name: StaticString, utf8 value: [UInt8]) {
        begin(name)
        value.withUnsafeBufferPointer { JsonString.write($0, to: &bytes) }
    }

    /// Writes a member whose value is JSON already.
    package mutating func json(_ name: StaticString, _ value: Json) {
        begin(name)
        bytes += value.bytes
    }

    private mutating func nest(_ start: UInt8, _ end: UInt8, _ write: (inout JsonWriter) -> Void) {
        bytes.append(start)
        isFirst = true
        write(&self)
        bytes.append(end)
        isFirst = false
    }

    private mutating func begin() {
        if !isFirst { bytes.append(0x2c) }
        isFirst = false
    }

    /// The names are plain ASCII.
    private mutating func begin(_ name: StaticString) {
        begin()
        bytes.append(0x22)
        bytes.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
        bytes.append(0x22)
        bytes.append(0x3a)
    }
}
