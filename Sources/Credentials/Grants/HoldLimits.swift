public import HttpWare

/// The limits of requests that wait for a token, or that are held for another reason.
public struct HoldLimits: Sendable, Equatable {
    /// The maximum number of waiting requests, in all loops together.
    public var max: Int
    /// The maximum size of all waiting requests: their header sections, and content received so far.
    public var maxBytes: ByteCount
    /// The maximum wait of a request.
    public var timeout: Duration

    public init(max: Int = 500, maxBytes: ByteCount = .mebibytes(64), timeout: Duration = .seconds(10)) {
        self.max = max
        self.maxBytes = maxBytes
        self.timeout = timeout
    }

    /// Reads `max`, `maxBytes` and `timeout`.
    public mutating func read(_ options: inout OptionsReader) {
        options.read(
            "max", into: &max, in: 0...1_000_000, doc: "maximum number of waiting requests; further ones are refused")
        options.read(
            "maxBytes", into: &maxBytes, in: .bytes(0) ... .gibibytes(16),
            doc: "maximum size of all waiting requests together, including content received so far")
        options.read(
            "timeout", into: &timeout, in: .milliseconds(1) ... .seconds(3600),
            doc: "maximum wait of a request; after that it is refused")
    }
}
