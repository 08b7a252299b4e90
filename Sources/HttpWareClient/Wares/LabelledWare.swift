import HttpWare

/// A ware with its own name in records, in place of its type's name.
public protocol LabelledWare: Ware {
    /// The name, short.
    var label: String { get }
}

extension ChainEntry {
    /// A ware as it stands in code, under its label where it has one.
    init(inCode ware: any Ware) {
        let gate = ware as? any GatedWare
        // What is stored here is stored for the users of one program.
        let own = ((gate?.ware ?? ware) as? NotModified)?.keptApart ?? gate?.ware ?? ware
        self.init(own, label: (own as? any LabelledWare)?.label, gate: gate)
    }
}
