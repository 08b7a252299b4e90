public import HttpWare

/// Writes captured exchanges as an archive of HAR 1.2, one entry at a time, so that the whole is never in memory.
///
/// The results of `begin`, `entry` and `end` in sequence are the file. Messages are written as the client sent and received
/// them, with their content decoded. Masked values stay masked.
public struct HarWriter: Sendable {
    private let version: String
    private var hasEntries = false
    /// The number of exchanges that were left out, because they have no URL.
    public private(set) var leftOut = 0

    /// A writer that names this version of the program as the archive's creator.
    public init(version: String = ProgramVersion.text) { self.version = version }

    /// The text before the first entry.
    public func begin() -> [UInt8] {
        let creator = Json.object([("name", "httpware"), ("version", .text(version))])
        return Array("{\"log\":{\"version\":\"1.2\",\"creator\":\(creator.text),\"pages\":[],\"entries\":[".utf8)
    }

    /// One entry, with the separator before it. Empty if the exchange has no URL: other programs refuse an archive with such an
    /// entry.
    public mutating func entry(_ exchange: CapturedExchange) -> [UInt8] {
        guard let entry = HarWriter.entryAlone(exchange) else {
            leaveOut()
            return []
        }
        return separator() + entry
    }

    /// Counts an exchange that is left out.
    public mutating func leaveOut() { leftOut += 1 }

    /// The text before the next entry.
    public mutating func separator() -> [UInt8] {
        defer { hasEntries = true }
        return Array((hasEntries ? ",\n" : "\n").utf8)
    }

    /// One entry without a separator; `nil` if the exchange has no URL.
    public static func entryAlone(_ exchange: CapturedExchange) -> [UInt8]? {
        HarEntry.hasUrl(exchange) ? HarEntry(exchange).json.bytes : nil
    }

    /// The text after the last entry. It states how many exchanges were left out and, with a number, how many secrets could not
    /// be restored.
    public func end(missingSecrets: Int? = nil) -> [UInt8] {
        let facts: [(String, Json?)] = [
            ("missingSecrets", missingSecrets.map(Json.number)), ("leftOut", leftOut > 0 ? .number(leftOut) : nil),
        ]
        let own = facts.contains { $0.1 != nil } ? ",\"_httpware\":\(Json.object(given: facts).text)" : ""
        return Array("\n]\(own)}}\n".utf8)
    }
}
