import HttpWare

/// Where a ware is written, however the lines around it moved: chain, and label or else name, and the how many-th of those.
struct WarePlace: Hashable, Sendable {
    let chain: String
    /// The value of `as`, else the ware's name.
    let key: String
    let isLabel: Bool
    /// Among the entries of the chain with the same key, from 0.
    let ordinal: Int
    /// The route whose `with` changed the entry, which is an instance of its own.
    var route: String?
}

/// A ware, and from what it was built: a reload that finds the same keeps the instance, and with it its state.
struct BuiltWare: Sendable {
    var ware: any ConfigurableWare
    let options: ConfigNode
    let files: [FileOfOptions]
    /// The paths that the options name, as they are opened: a relative path changes its meaning if the entry moves to another folder.
    let paths: [String]
    /// The objects to which the options refer by name.
    let references: [NamedReference]

    /// Whether building it again would only lose its state.
    func isSame(as other: BuiltWare) -> Bool {
        type(of: ware) == type(of: other.ware) && files == other.files && paths == other.paths
            && references == other.references
            && options.bare(exactly: true) == other.options.bare(exactly: true)
    }
}
