/// A rule about the keys of one map, for schemas.
public enum OptionRelation: Sendable, Hashable {
    /// At least one of the keys must be written.
    case any([String])
    /// At most one of the keys may be written.
    case single([String])
    /// The key must not be without content.
    case filled(String)
    /// If the first fact holds, the second one must hold, too.
    case implies(Fact, Fact)

    /// A fact about one key.
    public indirect enum Fact: Sendable, Hashable {
        /// The key is written.
        case given(String)
        /// The key has one of the values; without the key it holds if `otherwise` is true, because the default is among them.
        case value(String, among: [String], otherwise: Bool)
        /// The other fact does not hold.
        case not(Fact)

        static func value<Value: OptionValue & Equatable>(
            _ key: String, among values: [Value], usually value: Value?
        ) -> Fact {
            .value(key, among: values.map(\.optionText), otherwise: value.map(values.contains) ?? false)
        }
    }
}
