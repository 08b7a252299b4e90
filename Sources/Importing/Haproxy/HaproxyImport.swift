import HttpWare

/// Turns configuration files of HAProxy into listeners, services and routes.
struct HaproxyImport {
    /// Translates files in their order.
    static func translate(_ sources: [ImportSource]) -> GatewayDraft { GatewayDraft() }
}
