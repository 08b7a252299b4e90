/// What a refusal says to people.
final class ProblemText: Sendable {
    let detail: String
    /// The name of the fault, where there is one. RFC 9209 §2.3.
    let fault: String?

    init(_ detail: String, fault: String?) {
        self.detail = detail
        self.fault = fault
    }
}
