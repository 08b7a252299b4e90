internal import CLuaShims

/// A value that goes to a script or comes from one.
public enum ScriptValue: Equatable, Sendable {
    case missing
    case boolean(Bool)
    case integer(Int64)
    case number(Double)
    /// Strings of Lua are bytes of any kind.
    case string([UInt8])
    /// The values of a table under 1, 2 and so on.
    case list([ScriptValue])
    /// The members of a table, in any order.
    case table([Member])
    /// Stands for JSON's null.
    case null
    /// From a script only: a function, an object of the host, or another value that has no other form here.
    case other

    /// A key of a table and its value.
    public struct Member: Equatable, Sendable {
        public var key: ScriptValue
        public var value: ScriptValue

        public init(key: ScriptValue, value: ScriptValue) {
            self.key = key
            self.value = value
        }
    }

    /// The text as a string of UTF-8.
    public static func text(_ text: String) -> ScriptValue { .string(Array(text.utf8)) }

    /// The bytes of a string or, as Lua writes it, of an integer.
    public var bytes: [UInt8]? {
        switch self {
        case .string(let bytes): bytes
        case .integer(let value): Array(String(value).utf8)
        default: nil
        }
    }

    /// The member of a table with a name.
    public subscript(_ name: String) -> ScriptValue {
        guard case .table(let members) = self else { return .missing }
        return members.first { $0.key == .text(name) }?.value ?? .missing
    }
}

/// Writes and reads series of tagged bytes, the form in which values pass between this module and Lua.
struct ScriptSeries {
    private(set) var bytes: [UInt8] = []

    /// Appends a value. A value that has no form in Lua becomes nil.
    mutating func append(_ value: ScriptValue) {
        switch value {
        case .missing, .other: append(tag: SCRIPT_NIL)
        case .boolean(let value): append(tag: value ? SCRIPT_TRUE : SCRIPT_FALSE)
        case .integer(let value): append(value, tag: SCRIPT_INTEGER)
        case .number(let value): append(value, tag: SCRIPT_NUMBER)
        case .string(let bytes): append(string: bytes)
        case .list(let values):
            append(tag: SCRIPT_LIST)
            for value in values { append(value) }
            append(tag: SCRIPT_END)
        case .table(let members):
            append(tag: SCRIPT_TABLE)
            for member in members where member.key.isKey && member.value.isSomething {
                append(member.key)
                append(member.value)
            }
            append(tag: SCRIPT_END)
        case .null: append(tag: SCRIPT_NULL)
        }
    }

    mutating func append(tag: script_tag) { bytes.append(UInt8(truncatingIfNeeded: tag.rawValue)) }

    mutating func append(string: [UInt8]) {
        append(UInt32(clamping: string.count), tag: SCRIPT_STRING)
        bytes.append(contentsOf: string.prefix(Int(UInt32.max)))
    }

    mutating func append(_ value: some BitwiseCopyable, tag: script_tag) {
        append(tag: tag)
        withUnsafeBytes(of: value) { bytes.append(contentsOf: $0) }
    }

    /// Reads the first value of a series; `missing` if the series is empty, `nil` if it is malformed.
    static func read(_ bytes: UnsafeRawBufferPointer) -> ScriptValue? {
        guard !bytes.isEmpty else { return .missing }
        var reader = Reader(bytes: bytes)
        guard case .value(let value) = reader.next(depth: 0) else { return nil }
        return value
    }

    private enum Item {
        case value(ScriptValue), end, malformed
    }

    private struct Reader {
        let bytes: UnsafeRawBufferPointer
        var at = 0

        mutating func take<Value: BitwiseCopyable>(_ type: Value.Type) -> Value? {
            guard bytes.count - at >= MemoryLayout<Value>.size else { return nil }
            defer { at += MemoryLayout<Value>.size }
            return bytes.loadUnaligned(fromByteOffset: at, as: type)
        }

        mutating func next(depth: Int) -> Item {
            guard depth < 100, let tag = take(UInt8.self) else { return .malformed }
            switch script_tag(UInt32(tag)) {
            case SCRIPT_NIL: return .value(.missing)
            case SCRIPT_FALSE: return .value(.boolean(false))
            case SCRIPT_TRUE: return .value(.boolean(true))
            case SCRIPT_INTEGER: return take(Int64.self).map { .value(.integer($0)) } ?? .malformed
            case SCRIPT_NUMBER: return take(Double.self).map { .value(.number($0)) } ?? .malformed
            case SCRIPT_STRING:
                guard let count = take(UInt32.self).map(Int.init), bytes.count - at >= count else { return .malformed }
                defer { at += count }
                return .value(.string(Array(bytes[at..<at + count])))
            case SCRIPT_LIST: return list(depth: depth)
            case SCRIPT_TABLE: return table(depth: depth)
            case SCRIPT_END: return .end
            case SCRIPT_NULL: return .value(.null)
            case SCRIPT_OTHER: return .value(.other)
            default: return .malformed
            }
        }

        private mutating func list(depth: Int) -> Item {
            var values: [ScriptValue] = []
            while true {
                switch next(depth: depth + 1) {
                case .value(let value): values.append(value)
                case .end: return .value(.list(values))
                case .malformed: return .malformed
                }
            }
        }

        private mutating func table(depth: Int) -> Item {
            var members: [ScriptValue.Member] = []
            while true {
                switch next(depth: depth + 1) {
                case .value(let key):
                    guard case .value(let value) = next(depth: depth + 1) else { return .malformed }
                    members.append(ScriptValue.Member(key: key, value: value))
                case .end: return .value(.table(members))
                case .malformed: return .malformed
                }
            }
        }
    }
}

extension ScriptValue {
    /// Whether the value has a form in Lua that is not nil.
    fileprivate var isSomething: Bool { self != .missing && self != .other }

    /// Whether Lua accepts the value as a key.
    fileprivate var isKey: Bool {
        switch self {
        case .missing, .other: false
        case .number(let value): !value.isNaN
        default: true
        }
    }
}
