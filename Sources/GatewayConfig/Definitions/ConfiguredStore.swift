public import HttpCaching
public import HttpWare

/// An entry of `stores`, and the store that was made from it; also the built-in store.
public struct ConfiguredStore: Sendable {
    /// The place of the options; `code` for the built-in store.
    public let location: SourceLocation
    /// The store, which survives a reload while its definition stays the same.
    public let store: NamedStore

    /// The name in metrics, logs and errors.
    public var name: String { store.name }
}
