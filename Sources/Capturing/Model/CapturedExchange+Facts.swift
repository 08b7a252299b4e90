extension CapturedExchange {
    /// The host of the target URI, without user, port and brackets.
    public var host: String {
        var rest = url[...]
        if let scheme = rest.utf8.firstIndex(of: UInt8(ascii: ":")), rest[scheme...].hasPrefix("://") {
            rest = rest[rest.index(scheme, offsetBy: 3)...]
        }
        rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let user = rest.lastIndex(of: "@") { rest = rest[rest.index(after: user)...] }
        if rest.first == "[" { return String(rest.dropFirst().prefix { $0 != "]" }) }
        return String(rest.prefix { $0 != ":" })
    }

    /// The bytes of content that came from the client and went to it.
    public var contentSize: Int {
        let (sum, overflows) = request.content.size.addingReportingOverflow(response?.content.size ?? 0)
        return overflows ? .max : sum
    }
}
