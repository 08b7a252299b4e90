public import HttpWare

/// The built-in wares: to add one, add its line.
public enum BuiltinWares {
    /// Every ware that a configuration file can name.
    public static let all: [any ConfigurableWare.Type] = [
        BodyLimit.self, Forwarded.self, HostRule.self, IpRule.self, RequestHeaders.self, RequestId.self,
        RequiredHeaders.self, ResponseHeaders.self, UserAgent.self,
    ]
}
