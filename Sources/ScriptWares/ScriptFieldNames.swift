import HttpWare

/// The field names that a script has used last, so that they are checked once and not with each use.
struct ScriptFieldNames {
    private var names: [(bytes: [UInt8], name: FieldName)] = []
    private var next = 0

    private static let most = 16

    /// The name with these bytes, if it was used lately.
    func name(_ bytes: UnsafeBufferPointer<UInt8>) -> FieldName? {
        for known in names where known.bytes.count == bytes.count && bytes.elementsEqual(known.bytes) {
            return known.name
        }
        return nil
    }

    /// Keeps a name in place of the oldest one.
    mutating func add(_ name: FieldName) {
        let entry = (bytes: Array(name.text.utf8), name: name)
        if names.count < ScriptFieldNames.most {
            names.append(entry)
        } else {
            names[next] = entry
            next = (next + 1) % ScriptFieldNames.most
        }
    }
}
