public import HttpWare

/// Writes captured exchanges as an archive of HAR 1.2, one entry at a time, so that the whole is never in memory.
///
/// The results of `begin`, `entry` and `end` in sequence are the file. Messages are written as the client sent and received
/// them, with their content decoded. Masked values stay masked.
public struct HarWriter: Sendable {
    private let version: String
    private var hasEntries = false

    /// A writer that names this version of the program as the archive's creator.
    public init(version: String = ProgramVersion.text) { self.version = version }

    /// The text before the first entry.
    public func begin() -> [UInt8] {
        let creator = Json.object([("name", "httpware"), ("version", .text(version))])
        return Array("{\"log\":{\"version\":\"1.2\",\"creator\":\(creator.text),\"pages\":[],\"entries\":[".utf8)
    }

    /// One entry, with the separator before it.
    public mutating func entry(_ exchange: CapturedExchange) -> [UInt8] {
        let separator = hasEntries ? ",\n" : "\n"
        hasEntries = true
        return Array(separator.utf8) + HarEntry(exchange).json.bytes
    }

    /// The text after the last entry. With a number, the archive states how many secrets could not be restored.
    public func end(missingSecrets: Int? = nil) -> [UInt8] {
        let own = missingSecrets.map { ",\"_httpware\":\(Json.object([("missingSecrets", .number($0))]).text)" }
        return Array("\n]\(own ?? "")}}\n".utf8)
    }
}
