extension SocketAddress: OptionValue {
    public static let optionType = "address"
    public static var optionForm: OptionForm {
        .pattern("unix:.+|([Ll][Oo][Cc][Aa][Ll][Hh][Oo][Ss][Tt]|[0-9.]+|\\[[0-9A-Fa-f:.%a-z]+\\]):[0-9]{1,5}")
    }
    public var optionText: String { description }

    /// Reads an address and a port, or the path of a Unix socket; `localhost` is 127.0.0.1. Other names are not resolved.
    public init(optionText: String) throws(OptionMistake) {
        let hint = "write 127.0.0.1:8080, [::1]:8080 or unix:/run/httpware.sock"
        var text = optionText
        if text.lowercased().hasPrefix("localhost:") { text = "127.0.0.1" + text.dropFirst("localhost".count) }
        guard let address = SocketAddress(text) else {
            let isEveryone = optionText.hasPrefix(":") || optionText.hasPrefix("*:")
            if let mistake = PortText.mistake(in: text) { throw mistake }
            throw OptionMistake(isEveryone ? "write 0.0.0.0 or [::] before the port to listen on all addresses" : hint)
        }
        self = address
    }
}
