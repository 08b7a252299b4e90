@testable import Scripting

/// A host with two functions, and an object with a property, methods and keys.
final class TestHost: ScriptHost {
    var fields: [String: [UInt8]] = [:]
    var path: [UInt8] = Array("/".utf8)
    var logged: [ScriptValue] = []

    static let library = {
        var library = ScriptLibrary()
        library.add(function: "echo", in: "host", number: 0)
        library.add(function: "later", in: "host", number: 1)
        library.add(function: "refuse", in: "host", number: 2)
        library.add(function: "pairs", in: "host", number: 3)
        library.add(null: "null", in: "host")
        library.add(kind: 0, name: "a request")
        library.add(property: "path", number: 0)
        library.add(property: "fields", number: 1)
        library.add(method: "log", number: 0)
        library.add(kind: 1, name: "the fields", hasKeys: true)
        library.add(method: "each", number: 1, iterates: true)
        return library
    }()

    func answer(_ use: ScriptUse) -> ScriptReply {
        switch use.action {
        case .function(0):
            for place in 0..<use.count { use.append(use.value(place) ?? .missing) }
        case .function(1): return use.mayWait ? .later : .refuse("this function cannot wait here")
        case .function(2): return .refuse("refused")
        case .function(3): use.append(.list([.text("a"), .integer(1), .text("b"), .integer(2)]))
        case .method(kind: 0, _): logged.append(use.value(0) ?? .missing)
        case .method(kind: 1, _):
            use.append(
                .list(fields.sorted { $0.key < $1.key }.flatMap { [ScriptValue.text($0.key), .string($0.value)] }))
        case .read(kind: 0, 0): use.append(.string(path))
        case .read(kind: 0, 1): use.append(object: 1)
        case .write(kind: 0, 0):
            guard let bytes = use.bytes(0) else { return .refuse("a path is a string") }
            path = bytes
        case .readKey:
            guard let name = use.bytes(0), let value = fields[String(decoding: name, as: UTF8.self)] else {
                use.append(.missing)
                return .done
            }
            use.append(.string(value))
        case .writeKey:
            fields[String(decoding: use.bytes(0) ?? [], as: UTF8.self)] = use.bytes(1)
        default: return .refuse("unknown")
        }
        return .done
    }
}

/// A state with one script whose function `request` is called.
struct ScriptRig {
    let host = TestHost()
    let state: ScriptState
    let returned: ScriptValue

    /// - Parameter source: A whole script.
    init(_ source: String, limits: ScriptLimits = ScriptLimits()) throws(ScriptFault) {
        var returned = ScriptValue.missing
        state = try ScriptState(
            source: Array(source.utf8), name: "test.lua", functions: ["request", "response"], library: TestHost.library,
            limits: limits, host: host, returned: &returned)
        self.returned = returned
    }

    /// - Parameter body: The statements of the function `request`.
    init(body: String, limits: ScriptLimits = ScriptLimits()) throws(ScriptFault) {
        try self.init("return { request = function(req, opt)\n\(body)\nend }", limits: limits)
    }

    func call(_ function: Int = 0) -> ScriptState.Outcome {
        state.begin(function: function, arguments: [.object(0), .options], host: host)
    }

    /// The result of a call that ends well.
    func result() throws -> ScriptValue {
        switch call() {
        case .done(let value): return value
        case .failed(let fault): throw fault
        case .waits: throw ScriptFault(.error, name: "test", line: nil, reason: "the call waits")
        }
    }

    /// The fault of a call that fails.
    func fault() -> ScriptFault? {
        guard case .failed(let fault) = call() else { return nil }
        return fault
    }
}

/// Runs statements, and returns their first result.
func run(_ body: String, limits: ScriptLimits = ScriptLimits()) throws -> ScriptValue {
    try ScriptRig(body: body, limits: limits).result()
}

/// Runs statements that fail.
func fault(_ body: String, limits: ScriptLimits = ScriptLimits()) throws -> ScriptFault? {
    try ScriptRig(body: body, limits: limits).fault()
}
