extension FieldName: OptionValue {
    public static let optionType = "field name"
    public var optionText: String { text }
    public init(optionText: String) throws(OptionMistake) {
        guard let name = FieldName(optionText) else { throw OptionMistake("write a token such as X-Request-Id") }
        self = name
    }
}
