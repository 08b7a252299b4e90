/// One option, for help and schema.
public struct OptionDescription: Sendable, Hashable {
    /// The key with the keys of the maps around it: `path.strip`; in a list of maps `sequence[].status`.
    public var key: String
    /// The type in words: `byte count`, `list of text`, `map of text to template`, `options` for a nested map.
    public var type: String
    /// The default as a file would write it; empty without one.
    public var defaultText: String
    /// The bounds, such as `1B to 1GiB`; `nil` without any.
    public var allowed: String?
    /// The structure, for schemas.
    public var shape: OptionShape
    public var isSecret: Bool
    /// Whether the key must be written, because there is no default.
    public var isRequired = false
    /// The rules that begin with this key, about it and other keys of its map.
    public var relations: [OptionRelation] = []
    /// A phrase that explains the option; empty if its name is enough.
    public var doc: String

    /// Makes a description from its parts.
    public init(
        key: String, type: String, shape: OptionShape = .value(.text), defaultText: String, allowed: String?,
        isSecret: Bool, doc: String
    ) {
        self.key = key
        self.type = type
        self.shape = shape
        self.defaultText = defaultText
        self.allowed = allowed
        self.isSecret = isSecret
        self.doc = doc
    }
}
