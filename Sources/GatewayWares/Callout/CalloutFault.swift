/// Why a callout cannot do its work, as a sentence without a full stop.
struct CalloutFault: Error, Sendable, Equatable {
    enum Kind: Sendable {
        /// The program gives no answer: it does not run, is too slow, or has closed the connection.
        case noAnswer
        /// The program's answer is not one, or cannot be applied.
        case wrongAnswer
        /// The content is larger than the limit, or cannot be decoded.
        case content
    }

    let kind: Kind
    let reason: String

    init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }

    /// The answer is wrong.
    static func wrong(_ reason: String) -> CalloutFault { CalloutFault(.wrongAnswer, reason) }
}
