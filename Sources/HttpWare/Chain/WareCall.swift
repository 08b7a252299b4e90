/// A middleware in the form that the driver calls: one indirect call, without copying the ware or counting references.
///
/// Unchecked: it is immutable, and the ware is `Sendable`.
struct MiddlewareCall: @unchecked Sendable {
    private let box: Unmanaged<MiddlewareBox>

    /// Boxes the ware; `free()` releases the box.
    init(_ ware: any Middleware) {
        func boxed(_ ware: some Middleware) -> MiddlewareBox { BoxOfMiddleware(ware) }
        box = Unmanaged.passRetained(boxed(ware))
    }

    func free() { box.release() }

    /// Runs the ware. The owner of this call must be alive meanwhile.
    @inline(__always)
    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try box._withUnsafeGuaranteedRef { try $0.handle(&request, in: exchange) }
    }
}

/// The same for a postware, or a ware's response half.
struct PostwareCall: @unchecked Sendable {
    private let box: Unmanaged<PostwareBox>

    /// Boxes the ware; `free()` releases the box.
    init(_ ware: any Postware) {
        func boxed(_ ware: some Postware) -> PostwareBox { BoxOfPostware(ware) }
        box = Unmanaged.passRetained(boxed(ware))
    }

    func free() { box.release() }

    /// Runs the ware. The owner of this call must be alive meanwhile.
    @inline(__always)
    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try box._withUnsafeGuaranteedRef { try $0.handle(&response, in: exchange) }
    }
}

private class MiddlewareBox {
    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict { .pass }
}

private final class BoxOfMiddleware<Boxed: Middleware>: MiddlewareBox {
    private let ware: Boxed
    init(_ ware: Boxed) { self.ware = ware }
    override func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try ware.handle(&request, in: exchange)
    }
}

private class PostwareBox {
    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer { .pass }
}

private final class BoxOfPostware<Boxed: Postware>: PostwareBox {
    private let ware: Boxed
    init(_ ware: Boxed) { self.ware = ware }
    override func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try ware.handle(&response, in: exchange)
    }
}
