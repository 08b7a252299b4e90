/// A non-negative number of seconds in directives and in `Age`. RFC 9111 §1.2.2.
public enum DeltaSeconds {
    /// The value of a number that is too large: 2^31, over 68 years.
    public static let most: Int64 = 2_147_483_648

    /// The number of seconds in the text, at most `most`; `nil` if the text has characters other than digits, or is
    /// empty.
    public static func read(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty else { return nil }
        var seconds: Int64 = 0
        for byte in text.utf8 {
            guard (0x30...0x39).contains(byte) else { return nil }
            seconds = min(most, seconds * 10 + Int64(byte - 0x30))
        }
        return seconds
    }
}
