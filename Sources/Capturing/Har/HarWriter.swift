import HttpWare

/// Writes captured exchanges as an archive of HAR 1.2, entry by entry, so that the whole is never in memory.
///
/// The parts that `begin`, `entry` and `end` return, one after the other, are the file. Messages are written as the client sent
/// and got them, content without its codings. Values that the capture masked stay masked.
public struct HarWriter: Sendable {
    /// The version of the program.
    public static let programVersion = "0.2.0"

    private let version: String
    private var hasEntries = false

    /// A writer that names this version of the program as the archive's creator.
    public init(version: String = programVersion) { self.version = version }

    /// What stands before the first entry.
    public func begin() -> [UInt8] {
        let creator = Json.object([("name", "httpware"), ("version", .text(version))])
        return Array("{\"log\":{\"version\":\"1.2\",\"creator\":\(creator.text),\"pages\":[],\"entries\":[".utf8)
    }

    /// One entry.
    public mutating func entry(_ exchange: CapturedExchange) -> [UInt8] {
        let separator = hasEntries ? ",\n" : "\n"
        hasEntries = true
        return Array(separator.utf8) + HarEntry(exchange).json.bytes
    }

    /// What stands behind the last entry. With a number, the archive says how many secrets could not be restored.
    public func end(missingSecrets: Int? = nil) -> [UInt8] {
        let own = missingSecrets.map { ",\"_httpware\":\(Json.object([("missingSecrets", .number($0))]).text)" }
        return Array("\n]\(own ?? "")}}\n".utf8)
    }
}
