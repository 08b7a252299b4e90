import HttpWare

/// How names of origin servers, stores and other servers are looked up.
public struct ResolverDefinition: Sendable, Hashable {
    /// The longest use of an answer before the name is looked up again, whatever the TTL of its records is.
    public internal(set) var maxTtl = Duration.seconds(30)

    /// The defaults.
    public init() {}

    init(options: inout OptionsReader) {
        options.read(
            "maxTtl", into: &maxTtl, in: .seconds(1) ... .seconds(86_400),
            doc: "longest use of an answer before the name is looked up again, whatever its TTL is")
    }
}
