public import HttpWare

/// A difference between a case and what happened.
public struct CaseDifference: Sendable, Equatable {
    /// The place of the expectation.
    public var location: SourceLocation
    /// The expectation, such as `response.headers.X-Tenant`; empty if the text says it all.
    public var path: String
    /// The expected value; `nil` if the text says it all.
    public var expected: String?
    /// The actual value, or the whole text.
    public var actual: String

    /// Two values that differ.
    init(at location: SourceLocation, _ path: String, expected: String, actual: String) {
        self.location = location
        self.path = path
        self.expected = expected
        self.actual = actual
    }

    /// A sentence instead of values.
    init(at location: SourceLocation, _ text: String) {
        self.location = location
        path = ""
        expected = nil
        actual = text
    }

    /// The difference without its place: `response.status: expected 200, but it is 401`.
    public var text: String {
        guard let expected else { return actual }
        return "\(path): expected \(expected), but it is \(actual)"
    }
}

/// The result of a case.
public struct CaseOutcome: Sendable {
    public var name: String
    /// The place of the case.
    public var location: SourceLocation
    /// The differences; empty if the case passed.
    public var differences: [CaseDifference] = []
    /// For a case that failed: the decisions of the wares in the step that failed first, as in a record.
    public var decisions: [String] = []

    public init(name: String, location: SourceLocation) {
        self.name = name
        self.location = location
    }

    public var hasPassed: Bool { differences.isEmpty }
}

/// The actual results of a step.
struct StepResult {
    /// A request that went upstream, or a side call.
    struct Sent {
        /// The service; `nil` for a side call to a URL.
        var service: String?
        /// The absolute URL of a side call.
        var url = ""
        var method = ""
        /// The target as sent.
        var target = ""
        /// The lines of the header section.
        var fields: [CaseFields.Line] = []
        var trailers: [CaseFields.Line] = []
        var content: [UInt8] = []
    }

    /// The response; an error if it was cut off, and `nil` if none came.
    var response: Result<HttpResponse, GatewayError>?
    /// The requests that went upstream, in order.
    var upstream: [Sent] = []
    /// The side calls, in order.
    var calls: [Sent] = []
    /// The decisions of the wares, in order; `nil` if the exchange has not ended.
    var wares: [WareStep]?
    /// The labels of the chain that ran.
    var labels: [String] = []
}
