public import HttpWare

/// The checked settings of a forward listener for the programs that are started behind a wall, so that they reach nothing but this listener.
public struct ListenerJail: Sendable, Equatable {
    /// The handling of the program's DNS queries.
    public enum Names: String, OptionWord {
        /// Each name gets addresses of its own, by which connections are recognized. No query leaves the machine.
        case answer
        /// Every query is refused.
        case refuse
    }

    /// The ports that the program can connect to, at every address; others are refused.
    public internal(set) var ports = [80, 443]
    /// The handling of the program's DNS queries.
    public internal(set) var names = Names.answer
    /// The ports of this machine's loopback that the program reaches at its own.
    public internal(set) var exposed: [Int] = []

    /// The maximum number of ports; each takes a descriptor of each loop.
    static let mostPorts = 64
    /// The port of DNS.
    private static let dns = 53

    /// The usual settings, with these ports of the loopback.
    public init(exposing exposed: [Int] = []) { self.exposed = exposed }

    /// Reads `listeners.NAME.jail`; `nil` if it is missing or invalid.
    init?(options: inout OptionsReader) {
        var ports = ports.map(PortNumber.init)
        var exposed: [PortNumber] = []
        options.read("ports", into: &ports, doc: "the ports that the program can connect to, at every host")
        options.read("dns", into: &names, doc: "whether names are answered, with addresses that only the program uses")
        options.read(
            "expose", into: &exposed, doc: "the ports of this machine's 127.0.0.1 that the program reaches at its own")
        options.refuseEmpty("ports", "write the ports, such as 443")
        self.ports = ports.map(\.number)
        self.exposed = exposed.map(\.number)
        if let problem { options.fail(at: problem.key, problem.text) }
        guard options.isWritten, !options.hasErrors else { return nil }
    }

    /// The mistake in the ports together; `nil` if they are valid. Also judges ports from the command line.
    public var problem: (key: String, text: String)? {
        for (key, list) in [("ports", ports), ("expose", exposed)] {
            if list.count > ListenerJail.mostPorts {
                return (key, "has \(list.count) ports; write at most \(ListenerJail.mostPorts)")
            }
            if list.contains(ListenerJail.dns) {
                return (key, "53 is the port of DNS; the option dns says how queries are handled")
            }
            if Set(list).count < list.count { return (key, "lists a port twice") }
        }
        guard let both = exposed.first(where: ports.contains) else { return nil }
        return ("expose", "\(both) is in ports, too; a port leads either to hosts or to this machine")
    }
}
