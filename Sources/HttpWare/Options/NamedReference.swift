/// An object that options referred to by name. Equal for the same object.
public struct NamedReference: Sendable, Hashable {
    /// The noun, such as `credentials`.
    public let noun: String
    public let name: String
    private let identity: ObjectIdentifier?

    init(noun: String, name: String, object: AnyObject?) {
        self.noun = noun
        self.name = name
        identity = object.map(ObjectIdentifier.init)
    }
}
