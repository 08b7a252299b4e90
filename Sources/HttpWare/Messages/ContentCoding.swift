/// A content coding that the gateway can apply. RFC 9110 §8.4.1, RFC 7932, RFC 8878.
public enum ContentCoding: String, OptionWord, Sendable, CaseIterable {
    case gzip, br, zstd
}
