/// Detects mistakes in the port at the end of `host:port`.
package enum PortText {
    /// The mistake if the text's port is invalid; `nil` otherwise.
    package static func mistake(in authority: some StringProtocol) -> OptionMistake? {
        guard let colon = authority.lastIndex(of: ":"), !authority.hasSuffix("]") else { return nil }
        let port = authority[authority.index(after: colon)...]
        let ends = port.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(ByteClass.isDigit) }) else { return nil }
        if ends.count == 2 { return OptionMistake("write one port", problem: "\(port) is a range of ports") }
        guard ends.count == 1, (UInt16(port) ?? 0) == 0 else { return nil }
        return OptionMistake("write one from 1 to 65535", problem: "\(port) is not a port")
    }
}
