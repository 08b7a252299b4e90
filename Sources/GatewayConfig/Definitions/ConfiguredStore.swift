public import HttpCaching
public import HttpWare

/// One name's entry under `stores`, and the store that was made of it; also the one that is built in.
public struct ConfiguredStore: Sendable {
    /// Where its options begin; in the code for the one that is built in.
    public let location: SourceLocation
    /// Lives on over a reload while its definition is the same.
    public let store: NamedStore

    /// As metrics, logs and errors call it.
    public var name: String { store.name }
}
