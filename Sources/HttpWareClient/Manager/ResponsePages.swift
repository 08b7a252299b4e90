import HttpWare

/// The responses of a list that is divided into pages. Each page is requested when it is read.
///
/// ```swift
/// for try await page in manager.pages(of: Todos()) { show(page.model) }
/// ```
///
/// Throws the errors of a page's request, and an `HttpError` if a page leads to an earlier page.
public struct ResponsePages<Model: Decodable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = ModelResponse<Model>

    let manager: HttpManager
    let first: @Sendable () throws -> Request<Model>
    let following: @Sendable (ModelResponse<Model>) throws -> Request<Model>?

    public func makeAsyncIterator() -> Iterator { Iterator(self) }

    public struct Iterator: AsyncIteratorProtocol {
        private let pages: ResponsePages
        private var next: Request<Model>?
        private var seen: Set<[UInt8]> = []
        private var isFirst = true

        init(_ pages: ResponsePages) { self.pages = pages }

        /// The next page; `nil` after the last one.
        public mutating func next() async throws -> ModelResponse<Model>? {
            if isFirst {
                isFirst = false
                next = try pages.first()
            }
            guard let request = next.take() else { return nil }
            let page = try await pages.manager.response(of: request)
            // If the request has content, the content may select the page, and the addresses can be equal.
            if request.content.isEmpty, !seen.insert(page.asked.targetUri()).inserted {
                throw HttpError(.upstream, .redirect, .checking, "the page leads to itself, or to one before it").about(
                    request.name, page.request, page.response, page.responder)
            }
            next = try pages.following(page)
            return page
        }
    }
}

extension HttpManager {
    /// The pages of a route. `next` returns the route of the page that follows a response; `nil` ends the list.
    public func pages<R: Route>(
        of route: R, _ options: CallOption..., next: @escaping @Sendable (ModelResponse<R.Response>) throws -> R?
    ) -> ResponsePages<R.Response> {
        ResponsePages(manager: self) {
            try self.request(route, options)
        } following: { page in
            try next(page).map { try self.request($0, options) }
        }
    }

    /// The pages of a route whose responses name the next page in `Link` with `rel="next"`. RFC 8288.
    ///
    /// Throws if the next page is at another origin, because the request's credentials must not go there.
    public func pages<R: Route>(of route: R, _ options: CallOption...) -> ResponsePages<R.Response> {
        ResponsePages(manager: self) {
            try self.request(route, options)
        } following: { page in
            guard let target = page.links["next"] else { return nil }
            guard let message = page.asked.resolve(target), message.host != nil else {
                throw HttpError(
                    .upstream, .redirect, .checking, "the next page, \(target.debugDescription), has no valid URL"
                ).about("\(R.self)", page.request, page.response, page.responder)
            }
            // The request's credentials are meant for its own origin.
            guard OriginRouter.isSame(message, page.asked) else {
                throw HttpError(
                    .upstream, .redirect, .checking,
                    "the next page, \(target.debugDescription), is at another origin; pages(of:next:) can go there"
                ).about("\(R.self)", page.request, page.response, page.responder)
            }
            var request = try self.request(route, options)
            request.path = RoutePath(encoded: String(decoding: message.targetUri(), as: UTF8.self))
            request.query = [:]
            return request
        }
    }
}
