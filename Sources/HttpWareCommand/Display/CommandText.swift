/// Texts for a shell.
enum CommandText {
    /// The word, quoted for a shell if necessary.
    static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
                || "/._-+=:@%".utf8.contains($0)
        }
        return isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}
