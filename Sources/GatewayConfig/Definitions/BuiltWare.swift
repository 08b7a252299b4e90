import HttpWare

/// The position of a ware, which stays the same if the lines around it move: the chain, the label or name, and its number among
/// equal ones.
struct WarePlace: Hashable, Sendable {
    let chain: String
    /// The value of `as`, else the ware's name.
    let key: String
    let isLabel: Bool
    /// The number among the entries of the chain with the same key, from 0.
    let ordinal: Int
    /// The route whose `with` changed the entry, which makes it a separate instance; `nil` for the entry itself.
    var route: String?
}

/// A ware with the input from which it was built. If a reload finds the same input, it keeps the instance with its state.
struct BuiltWare: Sendable {
    var ware: any ConfigurableWare
    let options: ConfigNode
    let files: [FileOfOptions]
    /// The paths that the options name, as they are opened. A relative path changes if the entry moves to a file in another
    /// folder.
    let paths: [String]
    /// The objects to which the options refer by name.
    let references: [NamedReference]

    /// Whether both were built from the same input, so that building the ware again would only lose its state.
    func isSame(as other: BuiltWare) -> Bool {
        type(of: ware) == type(of: other.ware) && files == other.files && paths == other.paths
            && references == other.references
            && options.bare(exactly: true) == other.options.bare(exactly: true)
    }
}
