/// The constant value of a field: no control characters, and no white space at its ends. RFC 9110 §5.5.
public struct FieldText: Sendable, Hashable {
    /// The value as written.
    public let text: String
}

extension FieldText: OptionValue {
    public static let optionType = "field value"
    public var optionText: String { text }
    public init(optionText: String) throws(OptionMistake) {
        let ends = [optionText.utf8.first, optionText.utf8.last]
        guard optionText.utf8.allSatisfy({ ByteClass.isFieldValue($0) }), !ends.contains(0x20), !ends.contains(0x09)
        else {
            throw OptionMistake("write one line without control characters, or spaces at its ends")
        }
        text = optionText
    }
}
