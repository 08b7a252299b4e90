/// A list of hosts: patterns, or all.
public struct HostList: Sendable, Equatable {
    public var isAll = false
    public var patterns: [HostPattern] = []

    /// The hosts of these patterns.
    public init(_ patterns: [HostPattern], isAll: Bool = false) {
        self.patterns = patterns
        self.isAll = isAll
    }

    /// Whether the list contains the host: a name in lower case, or an address.
    func contains(_ host: String, _ port: UInt16) -> Bool {
        if isAll { return true }
        var host = host
        return host.withUTF8 { bytes in
            patterns.contains { $0.matches(UnsafeRawBufferPointer(bytes), port: Int(port)) }
        }
    }
}
