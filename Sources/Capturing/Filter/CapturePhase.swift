/// The progress of an exchange, which determines what is known about it.
public enum CapturePhase: Int, Sendable, Comparable, CaseIterable {
    case requestHead, requestContent, responseHead, responseContent, end

    public static func < (left: CapturePhase, right: CapturePhase) -> Bool { left.rawValue < right.rawValue }

    /// The name within a sentence: `the response's head`.
    var name: String {
        switch self {
        case .requestHead: "the request's head"
        case .requestContent: "the request's content"
        case .responseHead: "the response's head"
        case .responseContent: "the response's content"
        case .end: "the end of the exchange"
        }
    }
}

/// The phase that an operator of a filter needs before it can be decided.
public struct FilterNeed: Sendable, Equatable {
    /// The phase that an exchange must have reached.
    public let phase: CapturePhase
    /// Where the operator is: the number of the character, from 1.
    public let column: Int
    /// The operator as it was written, such as `~c`.
    public let name: String
}
