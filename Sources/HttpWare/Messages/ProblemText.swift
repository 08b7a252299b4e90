/// The text of a refusal for people.
final class ProblemText: Sendable {
    let detail: String
    /// The name of the fault; `nil` without one. RFC 9209 §2.3.
    let fault: String?
    /// Whether the content has its form for the client. The text is kept only for a client of gRPC.
    let isPresented: Bool

    init(_ detail: String, fault: String?, isPresented: Bool = false) {
        self.detail = detail
        self.fault = fault
        self.isPresented = isPresented
    }
}
