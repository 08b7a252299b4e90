import HttpWare

/// Turns configuration files of nginx into listeners, services and routes.
struct NginxImport {
    /// Translates files in their order.
    static func translate(_ sources: [ImportSource], files: ImportFiles) -> GatewayDraft { GatewayDraft() }
}
