extension HttpStatus: OptionValue {
    public static let optionType = "status"
    public static var optionForm: OptionForm { .whole(100...599) }
    public var optionText: String { String(code) }
    public init(optionText: String) throws(OptionMistake) {
        guard let code = UnitText.number(optionText.utf8), (100...599).contains(code), let status = HttpStatus(code)
        else {
            throw OptionMistake("write a status code from 100 to 599")
        }
        self = status
    }
}

extension StatusSet {
    /// Whether the status is in the set.
    public func contains(_ status: HttpStatus) -> Bool { contains(status.code) }
}
