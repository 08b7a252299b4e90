extension FieldName: OptionValue {
    public static let optionType = "field name"
    public static var optionForm: OptionForm { token }
    /// One or more token characters. RFC 9110 §5.6.2.
    static var token: OptionForm { .pattern("[!#$%&'*+.^_`|~0-9A-Za-z-]+") }
    public var optionText: String { text }
    public init(optionText: String) throws(OptionMistake) {
        guard let name = FieldName(optionText) else { throw OptionMistake("write a token such as X-Request-Id") }
        self = name
    }
}
