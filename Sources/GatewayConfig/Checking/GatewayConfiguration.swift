import HttpWare

/// A checked configuration: immutable, and swapped whole on reload.
public struct GatewayConfiguration: Sendable {
    /// In file order, each with its routes and their joined chains.
    public let listeners: [ListenerDefinition]
    /// In file order; the built-in `passthrough` is not among them.
    public let services: [ServiceDefinition]
    /// In file order; the first that matches wins.
    public let routes: [RouteDefinition]
    /// The gateway's own log.
    public let log: LogDefinition
    /// What the files say, joined and interpolated: the keys of the first file and of those it includes, in file order.
    let written: [ConfigNode.Entry]
    /// Every ware, by its place: what a reload may keep.
    let wares: [WarePlace: BuiltWare]
}
