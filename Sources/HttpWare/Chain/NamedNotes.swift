/// Texts that wares keep by name until the exchange ends, for log lines and templates: `{note.NAME}`. Used on the exchange's loop.
private enum NamedNotes: ExchangeKey {
    typealias Value = [(name: String, value: String)]
}

/// The notes that a dry run's wares make.
private enum DryNotes: ExchangeKey {
    typealias Value = [String]
}

extension Exchange {
    /// The most notes that an exchange keeps by name; further ones are dropped.
    public static let mostNamedNotes = 32
    private static let mostDryNotes = 64

    /// Keeps a text by name, in place of a former one, and adds it to the record: `tenant=acme`. The caller bounds both; they must hold
    /// no credentials.
    public func note(_ value: String, as name: String) {
        note("\(name)=\(value)")
        var notes = self[NamedNotes.self] ?? []
        if let place = notes.firstIndex(where: { $0.name == name }) {
            notes[place].value = value
        } else if notes.count < Exchange.mostNamedNotes {
            notes.append((name, value))
        }
        self[NamedNotes.self] = notes
    }

    /// The text that a ware has kept by name; `nil` without one.
    public func note(named name: String) -> String? { self[NamedNotes.self]?.first { $0.name == name }?.value }

    /// Takes over the texts by name of another exchange, for which this one works in the background.
    func takeNamedNotes(of other: Exchange) {
        if let notes = other[NamedNotes.self] { self[NamedNotes.self] = notes }
    }

    /// Keeps a note of a dry run.
    func noteDry(_ text: String) {
        let notes = self[DryNotes.self] ?? []
        if notes.count < Exchange.mostDryNotes { self[DryNotes.self] = notes + [text] }
    }

    /// Takes the notes of a dry run that were made since the last time.
    func takeDryNotes() -> [String] {
        guard let notes = self[DryNotes.self] else { return [] }
        self[DryNotes.self] = nil
        return notes
    }
}
