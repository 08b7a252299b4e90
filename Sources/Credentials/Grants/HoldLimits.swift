public import HttpWare

/// How much may wait behind a refresh.
public struct HoldLimits: Sendable, Equatable {
    /// Requests, of all loops together.
    public var max: Int
    /// Bytes of what waits: heads, and content that came meanwhile.
    public var maxBytes: ByteCount
    /// How long each waits.
    public var timeout: Duration

    public init(max: Int = 500, maxBytes: ByteCount = .mebibytes(64), timeout: Duration = .seconds(10)) {
        self.max = max
        self.maxBytes = maxBytes
        self.timeout = timeout
    }

    /// Reads `max`, `maxBytes` and `timeout`.
    public mutating func read(_ options: inout OptionsReader) {
        options.read("max", into: &max, in: 0...1_000_000, doc: "requests that wait; one more is answered 503")
        options.read(
            "maxBytes", into: &maxBytes, in: .bytes(0) ... .gibibytes(16),
            doc: "bytes of them, content that came included")
        options.read(
            "timeout", into: &timeout, in: .milliseconds(1) ... .seconds(3600),
            doc: "how long each waits before it is answered 503")
    }
}
