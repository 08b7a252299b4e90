public import HttpWare

/// A ware that acts on some requests only; see `when`.
public struct When<Base: Ware>: Ware, EntryGate {
    let base: Base
    private let decide: @Sendable (ClientRequest, HttpRequest) -> Bool

    public var order: WareOrder { base.order }
    public var needsRequestContent: Bool { false }

    init(_ base: Base, _ decide: @escaping @Sendable (ClientRequest, HttpRequest) -> Bool) {
        self.base = base
        self.decide = decide
    }

    public func admits(_ request: HttpRequest, in exchange: Exchange) -> Bool {
        exchange[ClientRequest.self].map { decide($0, request) } ?? false
    }

    public func admits(_ response: HttpResponse, in exchange: Exchange) -> Bool {
        exchange.request.map { admits($0, in: exchange) } ?? false
    }
}

extension When: Middleware where Base: Middleware {
    /// Not called: the chain asks the ware itself, behind the gate.
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try base.handle(&request, in: exchange)
    }
}

extension When: Postware where Base: Postware {
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try base.handle(&response, in: exchange)
    }
}

/// What the chain makes of a ware that is under a condition.
protocol GatedWare: Ware, EntryGate {
    var ware: any Ware { get }
}

extension When: GatedWare {
    var ware: any Ware { base }
}

extension Ware {
    /// This ware, for the requests for which the closure answers true; others pass it by.
    ///
    /// ```swift
    /// HttpCache(store: .memory()).when { request, _ in request.tags.contains("images") }
    /// ```
    ///
    /// It is given what is known of the request besides its message, and the message. It is asked on the loop, and must not block.
    public func when(
        _ decide: @escaping @Sendable (ClientRequest, HttpRequest) -> Bool
    ) -> When<Self> { When(self, decide) }
}
