/// Objects that options can refer to by name: `credential: orders-oauth`. Made when a configuration is loaded, for the wares in it.
public struct NamedObjects: Sendable {
    private var objects: [String: [String: (any AnyObject & Sendable)?]] = [:]

    public init() {}

    /// Adds an object under its noun – `credentials` – and name. `nil` is for an object whose definition has a mistake: references to
    /// it are then accepted, because one error is enough.
    public mutating func add(_ object: (any AnyObject & Sendable)?, noun: String, name: String) {
        objects[noun, default: [:]][name] = .some(object)
    }

    /// The names under a noun, sorted.
    func names(of noun: String) -> [String] { (objects[noun] ?? [:]).keys.sorted() }

    func contains(_ noun: String, _ name: String) -> Bool { objects[noun]?[name] != nil }

    func object(_ noun: String, _ name: String) -> (any AnyObject & Sendable)? { objects[noun]?[name] ?? nil }
}

/// A named object, such as a store, that may be kept on a server which gateways share.
public protocol ServerNamed: AnyObject, Sendable {
    /// The server; `nil` without one.
    var server: (any AnyObject & Sendable)? { get }
}

extension OptionsReader {
    /// Reads the name of an object that the configuration defines elsewhere, and finds it; an undefined name is an error.
    public mutating func read<Object: AnyObject & Sendable>(
        _ key: String, into object: inout Object?, of noun: String, doc: String = ""
    ) {
        var name: String?
        read(key, into: &name, doc: doc.isEmpty ? "a name under \(noun)" : "\(doc) (a name under \(noun))")
        guard let name else { return }
        find(name, for: key, into: &object, of: noun)
    }

    /// Reads the name of an object that the configuration defines elsewhere, and that is looked up later by its name. An undefined name
    /// is an error.
    public mutating func readName(_ key: String, into name: inout String?, of noun: String, doc: String = "") {
        read(key, into: &name, doc: doc.isEmpty ? "a name under \(noun)" : "\(doc) (a name under \(noun))")
        if let name { _ = find(name, for: key, of: noun) }
    }

    /// Reads the name of an object that the configuration defines elsewhere, and finds it. Without the key, the object with the standard
    /// name is used if it exists. An undefined name that was written is an error.
    public mutating func read<Object: AnyObject & Sendable>(
        _ key: String, into object: inout Object?, of noun: String, otherwise standard: String, doc: String = ""
    ) {
        var name = standard
        read(key, into: &name, doc: doc.isEmpty ? "a name under \(noun)" : "\(doc) (a name under \(noun))")
        guard isGiven(key) || objects.contains(noun, name) else { return }
        find(name, for: key, into: &object, of: noun)
    }

    private mutating func find<Object: AnyObject & Sendable>(
        _ name: String, for key: String, into object: inout Object?, of noun: String
    ) {
        guard let found = find(name, for: key, of: noun) else { return }
        object = found as? Object
    }

    /// Whether the configuration defines something of this name.
    public func hasNamed(_ name: String, of noun: String) -> Bool { objects.contains(noun, name) }

    /// Notes that the options use those objects under a noun whose names the text has in quotation marks: a script refers to them by
    /// name while it runs.
    public mutating func noteNames(in text: String, of noun: String) {
        for name in objects.names(of: noun) where text.contains("\"\(name)\"") || text.contains("'\(name)'") {
            references.append(NamedReference(noun: noun, name: name, object: objects.object(noun, name)))
        }
    }

    /// Finds the object that the value of a key names; `nil` if it is undefined, which is an error, or has a mistake of its own.
    mutating func find(_ name: String, for key: String, of noun: String) -> (any AnyObject & Sendable)? {
        guard objects.contains(noun, name) else {
            let near = didYouMean(name, among: objects.names(of: noun))
            let hint = near.isEmpty ? "; define it under \(noun)" : near
            fail(at: key, "there is no \(name.quotedForErrors) under \(noun)\(hint)")
            return nil
        }
        let object = objects.object(noun, name)
        references.append(NamedReference(noun: noun, name: name, object: object))
        return object
    }

    /// Finds the server of the store that the value of a key names. If the store has no server of this type, that is an error.
    public mutating func findServer<Server>(
        _ name: String, for key: String, as type: Server.Type = Server.self
    ) -> Server? {
        guard let store = find(name, for: key, of: "stores") else { return nil }
        guard let server = (store as? any ServerNamed)?.server as? Server else {
            fail(at: key, "\(name.quotedForErrors) is not kept in Redis; name a store with redis: { url: … }")
            return nil
        }
        return server
    }
}
