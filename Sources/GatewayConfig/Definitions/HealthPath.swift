import HttpWare

/// The path of a health check, which begins with a slash and may have a query.
struct HealthPath: OptionValue {
    let optionText: String

    static let optionType = "path"
    static var optionForm: OptionForm { .pattern("^/[!-\"$-~]*$") }

    init(optionText: String) throws(OptionMistake) {
        guard optionText.hasPrefix("/"), optionText.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x23 }) else {
            throw OptionMistake("write a path that begins with a slash, such as /healthz")
        }
        self.optionText = optionText
    }
}
