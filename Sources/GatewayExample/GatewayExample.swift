import HttpWareGateway

/// A gateway with wares of its own.
@main struct GatewayExample: GatewayProgram {
    static let name = "gateway-example"
    static let wares: [any ConfigurableWare.Type] = [MethodRule.self]
}
