public import HttpWare

/// Reads archives of HAR 1.2, and tolerates common errors of browsers and proxies.
///
/// Entries are read one at a time. Missing members have defaults, and an entry that is not an exchange is left out with a
/// warning. A file that is not JSON, has no list of entries, or exceeds a limit is refused as a whole.
public struct HarReader: Sendable {
    /// The limits of a file.
    public struct Limits: Sendable {
        /// In bytes.
        public var size = 256 << 20
        public var entries = 100_000
        /// The most field lines, messages and other elements of all entries together.
        public var elements = 1_000_000
        /// The most values in one entry, and their deepest nesting.
        public var json = JsonScanner.Rules.lenient

        public init() {}
    }

    /// The reason why a file is refused.
    public struct Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// The exchanges in the order of the file.
    public private(set) var exchanges: [CapturedExchange] = []
    /// Sentences about missing and wrong parts, at most `mostWarnings`.
    public private(set) var warnings: [String] = []
    /// The number of missing secrets that the archive states.
    public private(set) var missingSecrets = 0
    /// The number of exchanges without a URL that the archive states.
    public private(set) var leftOut = 0
    private var elements = 0
    private var silentWarnings = 0

    /// The most warnings that are kept.
    public static let mostWarnings = 100

    /// Reads a file. The exchanges are numbered from `firstId`.
    public init(_ bytes: [UInt8], firstId: Int = 1, limits: Limits = Limits()) throws(Refusal) {
        guard bytes.count <= limits.size else {
            throw Refusal(description: "the archive has \(bytes.count) bytes; at most \(limits.size) are read")
        }
        var scanner = JsonScanner(bytes, rules: limits.json)
        do throws(JsonFault) {
            guard try scanner.enterObject() else { throw JsonFault("the archive is not a JSON object") }
            var hasEntries = false
            while let name = try scanner.nextMember() {
                guard name == "log", try scanner.enterObject() else {
                    try scanner.skip()
                    continue
                }
                if try readLog(&scanner, firstId, limits) { hasEntries = true }
            }
            guard hasEntries else { throw JsonFault("the archive has no log.entries") }
            guard scanner.isAtEnd else { throw JsonFault("there is text after the archive") }
        } catch {
            throw Refusal(description: error.description)
        }
        if silentWarnings > 0 { warnings.append("\(silentWarnings) more") }
    }

    /// The facts that an archive of ours states about itself, without its entries. All are 0 if it states none.
    public static func facts(_ bytes: [UInt8]) -> (missingSecrets: Int, leftOut: Int) {
        var scanner = JsonScanner(bytes, rules: .lenient)
        guard (try? scanner.enterObject()) == true, (try? scanner.nextMember()) == "log",
            (try? scanner.enterObject()) == true
        else { return (0, 0) }
        while let name = try? scanner.nextMember() {
            if name == "_httpware" {
                let facts = try? scanner.value()
                return (max(0, facts?["missingSecrets"]?.whole ?? 0), max(0, facts?["leftOut"]?.whole ?? 0))
            }
            if (try? scanner.skip()) == nil { break }
        }
        return (0, 0)
    }

    /// Reads the log. Returns whether it has a list of entries.
    private mutating func readLog(
        _ scanner: inout JsonScanner, _ firstId: Int, _ limits: Limits
    ) throws(JsonFault) -> Bool {
        var hasEntries = false
        var isOwn = false
        while let name = try scanner.nextMember() {
            switch name {
            case "creator": isOwn = try scanner.value()["name"]?.string == "httpware"
            case "_httpware":
                let facts = try scanner.value()
                missingSecrets = max(0, facts["missingSecrets"]?.whole ?? 0)
                leftOut = max(0, facts["leftOut"]?.whole ?? 0)
            case "entries":
                guard try scanner.enterList() else { throw JsonFault("log.entries is not a list") }
                hasEntries = true
                var place = 0
                while try scanner.hasNextElement() {
                    guard place < limits.entries else {
                        throw JsonFault("the archive has more than \(limits.entries) entries")
                    }
                    let value = try scanner.value()
                    let (id, overflows) = firstId.addingReportingOverflow(exchanges.count)
                    var entry = HarImport(value, id: overflows ? .max : id, isOwn: isOwn)
                    let exchange = entry.exchange()
                    for warning in entry.warnings { warn("entry \(place + 1): \(warning)") }
                    if let exchange {
                        elements += exchange.elements
                        guard elements <= limits.elements else {
                            throw JsonFault(
                                "the archive has more than \(limits.elements) field lines and messages")
                        }
                        exchanges.append(exchange)
                    }
                    place += 1
                }
            default: try scanner.skip()
            }
        }
        return hasEntries
    }

    private mutating func warn(_ sentence: String) {
        if warnings.count < HarReader.mostWarnings { warnings.append(sentence) } else { silentWarnings += 1 }
    }
}

extension CapturedExchange {
    /// The number of its lines and messages.
    fileprivate var elements: Int {
        request.fields.count + request.trailers.count + (response?.fields.count ?? 0) + (response?.trailers.count ?? 0)
            + messages.count + progress.count + operations.count
    }
}
