public import HttpWare

/// The settings of captures: the captured exchanges, and the limits of what is kept.
public struct CaptureSettings: Sendable, Equatable {
    /// The most memory for all captures together.
    public var memory = ByteCount.mebibytes(64)
    /// The folder for captures beyond memory; `nil` keeps them in memory only.
    public var disk: CaptureDisk?
    /// The most bytes that are kept of each content.
    public var content = ByteCount.mebibytes(1)
    /// Limits capturing to matching exchanges; `nil` captures all.
    public var filter: CaptureFilter?
    /// The fields whose values are masked.
    public var redacted: [FieldName] = Redaction.fields

    public init() {}

    /// Whether only values are masked that the gateway itself put into messages.
    var showsAll: Bool { redacted.isEmpty }
}

/// The folder in which captures outlive memory and restarts.
public struct CaptureDisk: Sendable, Equatable {
    public var path: FilePath
    /// The most bytes of all its files.
    public var maxSize: ByteCount

    public init(path: FilePath, maxSize: ByteCount = .gibibytes(1)) {
        self.path = path
        self.maxSize = maxSize
    }
}
