public import HttpWare

/// The wares that every configuration file can use.
public enum BuiltinWares {
    /// All of them, in alphabetical order.
    public static let all: [any ConfigurableWare.Type] = [
        AccessLog.self,
        Accumulate.self,
        ApiKey.self,
        BasicAuth.self,
        BodyLimit.self,
        CircuitBreaker.self,
        Coalesce.self,
        Compress.self,
        Concurrency.self,
        Cors.self,
        ErrorPage.self,
        Forwarded.self,
        HostRule.self,
        HttpCache.self,
        Introspect.self,
        IpRule.self,
        Jwt.self,
        Metrics.self,
        Mock.self,
        NotModified.self,
        Offline.self,
        RateLimit.self,
        Redirect.self,
        RequestHeaders.self,
        RequestId.self,
        RequiredHeaders.self,
        ResponseHeaders.self,
        Retry.self,
        Rewrite.self,
        TimeLog.self,
        Timeout.self,
        TokenInject.self,
        TokenRefresh.self,
        Traceparent.self,
        Unauthorized.self,
        UserAgent.self,
    ]
}
