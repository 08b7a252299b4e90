internal import CLuaShims
internal import Glibc

/// The way in which a script uses its host.
public enum ScriptAction: Sendable, Equatable {
    /// Calls a function of a library.
    case function(Int)
    /// Calls a method of an object.
    case method(kind: Int, Int)
    /// Reads a property.
    case read(kind: Int, Int)
    /// Assigns to a property.
    case write(kind: Int, Int)
    /// Reads the value under a key.
    case readKey(kind: Int)
    /// Assigns the value under a key.
    case writeKey(kind: Int)
}

/// The host's answer to a use.
public enum ScriptReply: Sendable {
    /// The results were appended to the use.
    case done
    /// The script gets an error with this text.
    case refuse(String)
    /// The result comes later. Only while `mayWait`.
    case later
}

/// An object that scripts use.
public protocol ScriptHost: AnyObject {
    /// Answers a use of the host. Called while a state runs, on its thread; must not use the state.
    func answer(_ use: ScriptUse) -> ScriptReply
}

/// One use of the host: the arguments, and the place for the results. Valid only during `ScriptHost.answer`.
public struct ScriptUse {
    let state: OpaquePointer
    public let action: ScriptAction

    /// Whether the host may answer later.
    public var mayWait: Bool { script_may_wait(state) != 0 }
    /// Whether the time of the call has passed. Work that takes longer with its input asks from time to time, and refuses the use then.
    public var isOver: Bool { script_is_over(state) != 0 }
    /// The line of the script, if it is known.
    public var line: Int? {
        let line = script_line(state)
        return line > 0 ? Int(line) : nil
    }

    /// The first place of the arguments in Lua's order: behind the object, if the use has one.
    private var offset: Int32 {
        switch action {
        case .function: 1
        case .method, .readKey, .writeKey: 2
        case .read: 2
        case .write: 3
        }
    }

    /// The number of arguments. For a key it is 1, and with an assigned value 2.
    public var count: Int { Int(max(0, script_argument_count(state) - offset + 1)) }

    /// The argument, counted from 0. A table is copied.
    ///
    /// `nil` if the argument is nested too deeply or too large.
    public func value(_ place: Int) -> ScriptValue? {
        let place = Int32(place) + offset
        switch script_tag(UInt32(script_argument_tag(state, place))) {
        case SCRIPT_NIL: return .missing
        case SCRIPT_FALSE: return .boolean(false)
        case SCRIPT_TRUE: return .boolean(true)
        case SCRIPT_INTEGER: return .integer(script_argument_integer(state, place))
        case SCRIPT_NUMBER: return .number(script_argument_number(state, place))
        case SCRIPT_STRING: return withBytes(at: place) { .string(Array($0)) } ?? .missing
        case SCRIPT_NULL: return .null
        case SCRIPT_TABLE:
            var bytes: UnsafePointer<UInt8>?
            var count = 0
            guard script_argument_series(state, place, &bytes, &count) != 0 else { return nil }
            return ScriptSeries.read(UnsafeRawBufferPointer(start: bytes, count: count))
        default: return .other
        }
    }

    /// Whether the argument is missing or nil.
    public func isMissing(_ place: Int) -> Bool {
        script_argument_tag(state, Int32(place) + offset) == Int32(SCRIPT_NIL.rawValue)
    }

    /// Calls the body with the bytes of an argument that is a string, without a copy. `nil` if it is not.
    public func withString<Result>(_ place: Int, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
        withBytes(at: Int32(place) + offset, body)
    }

    private func withBytes<Result>(at place: Int32, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
        var count = 0
        guard let bytes = script_argument_bytes(state, place, &count) else { return nil }
        return body(UnsafeBufferPointer(start: bytes, count: count))
    }

    /// The argument as bytes: a string, or a number as Lua writes it.
    public func bytes(_ place: Int) -> [UInt8]? {
        switch value(place) {
        case .string(let bytes): bytes
        case .integer(let value): Array(String(value).utf8)
        case .number(let value): Array(String(value).utf8)
        default: nil
        }
    }

    /// The argument as a number without a fraction.
    public func integer(_ place: Int) -> Int? {
        switch value(place) {
        case .integer(let value): Int(value)
        case .number(let value): Int(exactly: value)
        default: nil
        }
    }

    /// Appends a result.
    public func append(_ value: ScriptValue) {
        switch value {
        case .string(let bytes): bytes.withUnsafeBufferPointer { append(bytes: $0) }
        default:
            var series = ScriptSeries()
            series.append(value)
            append(raw: series.bytes)
        }
    }

    /// Appends a value in parts: the beginning of a list, of whose elements each is appended.
    public func beginList() { append(tag: SCRIPT_LIST) }

    /// Begins a table, of which each key and its value is appended.
    public func beginTable() { append(tag: SCRIPT_TABLE) }

    /// Ends the list or the table that was begun last.
    public func endParts() { append(tag: SCRIPT_END) }

    private func append(tag: script_tag) {
        withUnsafeBytes(of: UInt8(truncatingIfNeeded: tag.rawValue)) {
            _ = script_answer_append(state, $0.baseAddress, 1)
        }
    }

    /// Appends a string as a result.
    public func append(bytes: UnsafeBufferPointer<UInt8>) {
        script_answer_string(state, bytes.baseAddress, bytes.count)
    }

    /// Appends a text as a result.
    public func append(text: String) {
        var text = text
        text.withUTF8 { append(bytes: $0) }
    }

    /// Appends an object of the running call as a result.
    public func append(object kind: Int) { script_answer_object(state, Int32(kind)) }

    private func append(raw bytes: [UInt8]) {
        // An answer over the limit of the state is cut off, and Lua's side reports that it is incomplete.
        bytes.withUnsafeBytes { _ = script_answer_append(state, $0.baseAddress, $0.count) }
    }
}
