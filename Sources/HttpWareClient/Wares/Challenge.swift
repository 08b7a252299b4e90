import Credentials
import Wares

/// Answers a challenge of the origin server and sends the request again: step-up authentication, a second factor, or
/// consent.
///
/// ```swift
/// Challenge(statuses: [403]) { response, exchange in
///     guard response.fields["X-Step-Up"] != nil else { return nil }
///     return ["X-One-Time-Code": try await askForCode()]
/// }
/// ```
///
/// The closure is called once for a request, if its response has one of the statuses. The request is sent again with
/// the fields that it returns; `nil` passes the response on. It runs on the exchange's loop, which continues while the
/// closure awaits. Content in memory, files, and other content that can be opened again are sent again at any size. Up to
/// `maxContent` of other content is kept; if it is larger, the closure is not called, and the response is passed on.
public struct Challenge: CompanionWare, Postware {
    public typealias Answering = @Sendable (HttpResponse, Exchange) async throws -> HeaderFields?

    public var statuses: StatusSet
    public var maxContent: ByteCount
    private let answer: Answering

    public var contentNeed: ContentNeed { .kept(upTo: maxContent.bytes) }
    public var mayReplay: Bool { true }
    public var companion: any Middleware { AddedFields() }

    public init(
        statuses: StatusSet = [401], maxContent: ByteCount = .mebibytes(1), _ answer: @escaping Answering
    ) {
        self.statuses = statuses
        self.maxContent = maxContent
        self.answer = answer
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard statuses.contains(response.status.code), exchange[Answered.self] == nil else { return .pass }
        guard !exchange.record.outgrewKept else {
            exchange[NotRepeatable.self] = .isFinal
            return .pass
        }
        return .wait { response, exchange in
            let fields = try await AwaitedWork.$isCurrent.withValue(true) { try await answer(response, exchange) }
            guard let fields else { return .pass }
            exchange[Answered.self] = fields
            exchange.note("answered \(response.status.code)")
            return .replay(after: .zero)
        }
    }

    /// The closure's answer for this exchange.
    private enum Answered: ExchangeKey { typealias Value = HeaderFields }

    /// Adds the answer to the request when it is sent again.
    private struct AddedFields: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
            if let fields = exchange[Answered.self] { try fields.apply(to: &request.fields) }
            return .pass
        }
    }
}
