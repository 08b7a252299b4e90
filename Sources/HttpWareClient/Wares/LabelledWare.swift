/// A ware with its own name in records, in place of its type's name.
public protocol LabelledWare: Ware {
    /// The name, short.
    var label: String { get }
}

extension ChainEntry {
    /// A ware as it stands in code, under its label where it has one.
    init(inCode ware: any Ware) { self.init(ware, label: (ware as? any LabelledWare)?.label) }
}
