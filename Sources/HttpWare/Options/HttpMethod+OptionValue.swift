extension HttpMethod: OptionValue {
    public static let optionType = "method"
    public static var optionForm: OptionForm { FieldName.token }
    public var optionText: String { name }

    /// Any token, but not a known method in the wrong case: methods are case-sensitive (RFC 9110 §9.1).
    public init(optionText: String) throws(OptionMistake) {
        let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"]
        let upper = optionText.uppercased()
        let isWrongCase = optionText != upper && known.contains(upper)
        guard !isWrongCase, let method = HttpMethod(optionText) else {
            throw OptionMistake(
                isWrongCase ? "methods are case-sensitive: write \(upper)" : "write a token such as GET")
        }
        self = method
    }
}
