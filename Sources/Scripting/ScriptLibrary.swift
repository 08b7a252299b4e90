/// The functions and objects that a host gives to scripts. The host knows each by a number of its own.
public struct ScriptLibrary: Sendable {
    struct Function: Sendable {
        let library: String
        let name: String
        let number: Int32
    }

    struct Kind: Sendable {
        let number: Int32
        let name: String
        let hasKeys: Bool
        var properties: [(name: String, number: Int32)] = []
        var methods: [(name: String, number: Int32, iterates: Bool)] = []
    }

    private(set) var functions: [Function] = []
    private(set) var kinds: [Kind] = []

    public init() {}

    /// Adds a function to a library of scripts; with an empty name of the library, the function is global.
    public mutating func add(function name: String, in library: String, number: Int) {
        functions.append(Function(library: library, name: name, number: Int32(number)))
    }

    /// Adds the value that stands for JSON's null.
    public mutating func add(null name: String, in library: String) {
        functions.append(Function(library: library, name: name, number: -1))
    }

    /// Adds a kind of objects, which belong to one call each.
    ///
    /// - Parameters:
    ///   - kind: From 0 to 15.
    ///   - hasKeys: Whether all names that are not members are keys.
    public mutating func add(kind: Int, name: String, hasKeys: Bool = false) {
        precondition((0..<16).contains(kind), "Lua's side has room for 16 kinds")
        kinds.append(Kind(number: Int32(kind), name: name, hasKeys: hasKeys))
    }

    /// Adds a property to the kind that was added last.
    public mutating func add(property name: String, number: Int) {
        kinds[kinds.count - 1].properties.append((name, Int32(number)))
    }

    /// Adds a method to the kind that was added last. If it `iterates`, its result is a list of names and values in turn, and a script
    /// gets an iterator over them.
    public mutating func add(method name: String, number: Int, iterates: Bool = false) {
        kinds[kinds.count - 1].methods.append((name, Int32(number), iterates))
    }
}
