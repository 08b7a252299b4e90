import HttpWare

/// A ware with its own name in records, instead of its type's name.
public protocol LabelledWare: Ware {
    /// The short name.
    var label: String { get }
}

extension ChainEntry {
    /// A ware in code, with its label if it has one.
    init(inCode ware: any Ware) {
        let gate = ware as? any GatedWare
        // Responses stored here belong to the users of one program.
        let own = ((gate?.ware ?? ware) as? NotModified)?.keptApart ?? gate?.ware ?? ware
        self.init(own, label: (own as? any LabelledWare)?.label, gate: gate)
    }
}
