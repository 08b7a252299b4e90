/// A mistake in the text of a filter.
public struct FilterFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// The position of the mistake: the number of the character, from 1.
    public let column: Int
    /// The mistake and its fix, as one sentence without a full stop.
    public let sentence: String

    /// Makes a fault.
    public init(column: Int, _ sentence: String) {
        self.column = column
        self.sentence = sentence
    }

    public var description: String { "column \(column): \(sentence)" }
}
