import HttpWareGateway

/// The program `httpware`: a gateway without wares of its own.
@main struct Httpware: GatewayProgram {
    static let name = "httpware"
}
