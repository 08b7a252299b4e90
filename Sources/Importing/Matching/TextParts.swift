extension String {
    /// The text with each occurrence of `part` replaced, byte by byte.
    func replacingBytes(_ part: String, by value: String) -> String {
        guard !part.isEmpty else { return self }
        let pieces = Array(utf8).split(separator: Array(part.utf8), omittingEmptySubsequences: false)
        return pieces.count > 1
            ? String(decoding: Array(pieces.joined(separator: Array(value.utf8))), as: UTF8.self) : self
    }
}
