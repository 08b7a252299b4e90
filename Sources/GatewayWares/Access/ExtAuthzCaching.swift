import HttpCaching
public import HttpWare

/// The rules by which answers of an authorization server are remembered.
public struct ExtAuthzCaching: Sendable {
    /// How long a 2xx answer without an explicit lifetime is remembered. It also limits the explicit lifetimes. `nil`
    /// remembers only answers with an explicit lifetime.
    public var ttl: Duration?
    /// The maximum number of remembered answers.
    public var maxEntries = 10_000
    /// The fields that tell requests apart, in addition to method and target.
    public var key: [FieldName] = [.authorization, .cookie]

    public init() {}

    /// How long the answer may be remembered; `nil` if it must not be. RFC 9111 §4.2.1.
    ///
    /// The memory counts as a private cache, because its key includes the credentials. 401 and 403 need an explicit lifetime.
    func lifetime(of answer: HttpResponse, asked: WallTime, now: WallTime) -> Duration? {
        let isAllowed = answer.status.code / 100 == 2
        guard isAllowed || answer.status == .unauthorized || answer.status == .forbidden else { return nil }
        let directives = ResponseDirectives(of: answer.fields)
        guard !directives.noStore, directives.noCache == .nothing, !answer.fields.contains(.setCookie),
            isKeyed(answer.fields)
        else { return nil }
        var policy = CachePolicy()
        policy.mode = .private
        let times = MessageTimes(answer.fields, requested: asked, received: now)
        let stated = FreshnessLifetime(
            status: answer.status, fields: answer.fields, directives: directives, times: times, policy: policy,
            mayGuess: false)
        guard stated.isExplicit else { return isAllowed ? ttl : nil }
        let left = Duration.seconds(stated.seconds) - .nanoseconds(times.currentAge(at: now))
        guard left > .zero else { return nil }
        return ttl.map { min($0, left) } ?? left
    }

    /// Whether the answer varies only by fields that the key includes. RFC 9111 §4.1.
    private func isKeyed(_ fields: HttpFields) -> Bool {
        fields.listMembers(of: .vary).allSatisfy { member in
            guard let name = FieldName(member) else { return false }
            return key.contains(name) || Self.known.contains(name)
        }
    }

    /// The fields whose values every key includes.
    private static let known: [FieldName] = [
        "X-Forwarded-Method", .xForwardedProto, .xForwardedHost, "X-Forwarded-Uri", .xForwardedFor,
        "X-Original-Method", "X-Original-URI", "X-Original-URL",
    ]
}
