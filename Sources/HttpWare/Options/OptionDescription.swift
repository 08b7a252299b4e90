/// One option as help and schema show it.
public struct OptionDescription: Sendable, Hashable {
    /// With the keys of the maps around it: `path.strip`; a list of maps is `sequence[].status`.
    public var key: String
    /// In words: `byte count`, `list of text`, `map of text to template`, `options` for a nested map.
    public var type: String
    /// As a file would spell it; empty where there is none.
    public var defaultText: String
    /// The bounds, if there are any: `1B to 1GiB`.
    public var allowed: String?
    /// How it is written, for schemas.
    public var shape: OptionShape
    public var isSecret: Bool
    /// There is no default; the key has to be written.
    public var isRequired = false
    /// Exactly one of these keys, this one among them, has to be written; empty where nothing of the kind is asked.
    public var alternatives: [String] = []
    /// A phrase; empty where the name says it.
    public var doc: String

    /// Makes a description of its parts.
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
