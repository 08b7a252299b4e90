extension HttpFields {
    /// Says that the response depends on these fields of the request, each once. RFC 9110 §12.5.5.
    public mutating func addVary(_ names: FieldName...) {
        let present = listMembers(of: .vary)
        if present.contains("*") { return }
        for name in names where !present.contains(where: { FieldName($0) == name }) {
            // A field's name is a field value.
            try? append(.vary, name.text)
        }
    }
}
