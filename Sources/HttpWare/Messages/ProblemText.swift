/// The text of a refusal for people.
final class ProblemText: Sendable {
    let detail: String
    /// The name of the fault; `nil` without one. RFC 9209 §2.3.
    let fault: String?

    init(_ detail: String, fault: String?) {
        self.detail = detail
        self.fault = fault
    }
}
