/// White space among the bytes of a text, which may have been written on any system.
public enum TextBytes {
    /// Whether the byte ends a line, alone or with another one.
    @inlinable
    public static func isLineEnd(_ byte: UInt8) -> Bool { byte == 0x0a || byte == 0x0d }

    /// Whether the byte is a space, a tab or a line end.
    @inlinable
    public static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || isLineEnd(byte) }

    /// Whether the bytes contain no control characters except white space.
    @inlinable
    public static func isPlain(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f || (0x09...0x0d).contains($0) }
    }
}
