/// What a client of HTTP/2 sends first. RFC 9113 §3.4.
enum Http2Preface {
    /// How long it is.
    static let count = 24

    /// Whether these bytes, which were refused as a head of HTTP/1.1, are the first line of it.
    static func begins(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let line: StaticString = "PRI * HTTP/2.0\r\n"
        guard bytes.count >= line.utf8CodeUnitCount else { return false }
        return (0..<line.utf8CodeUnitCount).allSatisfy { bytes[$0] == line.utf8Start[$0] }
    }
}
