extension IPNetwork: OptionValue {
    public static let optionType = "network"
    public static var optionForm: OptionForm { .pattern("[0-9A-Fa-f.:]+(/[0-9]{1,3})?") }
    public var optionText: String { description }
    public init(optionText: String) throws(OptionMistake) {
        guard let network = IPNetwork(optionText) else {
            if let network = IPNetwork(cutting: optionText) {
                throw OptionMistake(
                    "write \(network)",
                    problem: "\(optionText.quotedForErrors) has bits behind its first \(network.prefixLength)")
            }
            throw OptionMistake("write an address or a network, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32")
        }
        self = network
    }
}
