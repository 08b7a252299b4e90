import HttpWare

/// A line of the RFCs about caches as a row of a table: a response comes, and after a while a second request.
struct CacheTrial: Sendable, CustomStringConvertible {
    /// The fate of the second request.
    enum Outcome: Sendable, Equatable {
        /// It is answered from the store; the origin server is not asked.
        case stored
        /// The origin server is asked, and not about what is stored.
        case asked
        /// The origin server is asked whether what is stored still holds.
        case validated
        /// It is answered with this status; the origin server is not asked.
        case refused(Int)
    }

    let section: String
    let what: String
    var method = HttpMethod.get
    var path = "/"
    /// The first request's lines.
    var asks: [String] = []
    /// The status and lines of the first response.
    var status = 200
    var answer: [String]
    /// Seconds between the first response and the second request.
    var wait = 0
    var thenMethod = HttpMethod.get
    var thenPath = "/"
    /// The second request's lines.
    var then: [String] = []
    var isPrivate = false
    let outcome: Outcome
    /// The status, and lines that the second answer has; `name:` alone is a line that it lacks.
    var thenStatus = 200
    var has: [String] = []

    var description: String { "\(section) \(what)" }
}

/// A row. RFC 9111 where no other is named.
func trial(
    _ section: String, _ what: String, method: HttpMethod = .get, at path: String = "/", asks: [String] = [],
    status: Int = 200, _ answer: [String], wait: Int = 0, thenMethod: HttpMethod = .get, thenPath: String = "/",
    then: [String] = [], isPrivate: Bool = false, _ outcome: CacheTrial.Outcome, thenStatus: Int? = nil,
    has: [String] = []
) -> CacheTrial {
    CacheTrial(
        section: section.hasPrefix("RFC") ? section : "RFC 9111 \(section)", what: what, method: method, path: path,
        asks: asks, status: status, answer: answer, wait: wait, thenMethod: thenMethod, thenPath: thenPath, then: then,
        isPrivate: isPrivate, outcome: outcome, thenStatus: thenStatus ?? (outcome == .stored ? status : 200), has: has)
}

/// The rows of several tables, each in parts.
func flat(_ tables: [[[CacheTrial]]]) -> [CacheTrial] { tables.flatMap { $0.flatMap(\.self) } }

/// `Cache-Control` with these directives.
func control(_ directives: String) -> String { "Cache-Control: \(directives)" }

/// The clock of tests stands still at this time, 2026-01-01T00:00:00Z.
private let start = WallTime(seconds: 1_767_225_600)

/// A date field, this number of seconds after the first request.
func dated(_ name: String, _ seconds: Int64) -> String {
    "\(name): \(HttpDate.text(WallTime(seconds: start.seconds + seconds)))"
}
