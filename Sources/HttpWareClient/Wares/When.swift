public import HttpWare

/// A ware that acts only on some requests; see `when`.
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
    /// Not called: the chain calls the base ware itself, after the gate.
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try base.handle(&request, in: exchange)
    }
}

extension When: Postware where Base: Postware {
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try base.handle(&response, in: exchange)
    }
}

/// The form in which the chain sees a conditional ware.
protocol GatedWare: Ware, EntryGate {
    var ware: any Ware { get }
}

extension When: GatedWare {
    var ware: any Ware { base }
}

extension Ware {
    /// This ware, limited to the requests for which the closure returns true. Other requests skip it.
    ///
    /// ```swift
    /// HttpCache(store: .memory()).when { request, _ in request.tags.contains("images") }
    /// ```
    ///
    /// The closure receives the facts about the request, and its message. It runs on the loop, and must not block.
    public func when(
        _ decide: @escaping @Sendable (ClientRequest, HttpRequest) -> Bool
    ) -> When<Self> { When(self, decide) }
}
