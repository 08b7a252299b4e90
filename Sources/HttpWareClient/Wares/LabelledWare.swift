/// A ware that records call by a name of its own, not by its type's.
public protocol LabelledWare: Ware {
    /// The name, short.
    var label: String { get }
}

extension ChainEntry {
    /// A ware as it stands in code, under its label where it has one.
    init(inCode ware: any Ware) { self.init(ware, label: (ware as? any LabelledWare)?.label) }
}
