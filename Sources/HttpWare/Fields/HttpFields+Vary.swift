extension HttpFields {
    /// Adds the names to `Vary`, each once: the response depends on these fields of the request. RFC 9110 §12.5.5.
    public mutating func addVary(_ names: FieldName...) {
        let present = listMembers(of: .vary)
        if present.contains("*") { return }
        for name in names where !present.contains(where: { FieldName($0) == name }) {
            // A field name is always a valid field value.
            try? append(.vary, name.text)
        }
    }
}
