import HttpWareClient
import Synchronization

/// Keeps the last answer to each GET. It asks whether that is still right (304, RFC 9110 §13.1.2), and gives it when the server
/// cannot be reached: a ware that works in both directions.
///
/// For the full rules of HTTP caching there is the ware `httpCache`; this one shows how little a ware of one's own is.
final class StoredAnswers: Middleware, Postware {
    private struct Stored {
        var response: HttpResponse
        var content: [UInt8]
    }

    private let stored = Mutex<[String: Stored]>([:])

    // On the way out: the validator of what is stored.
    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        guard request.method == .get else { return .pass }
        exchange[Key.self] = request.upstreamTarget
        if let tag = find(request.upstreamTarget)?.response.fields[.etag] {
            try request.fields.set(.ifNoneMatch, to: tag)
        }
        return .pass
    }

    // On the way back: not modified, or not reached.
    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let key = exchange[Key.self] else { return .pass }
        let isUnreachable = exchange.responder == .gateway && exchange.failure?.side == .upstream
        if response.status == .notModified || isUnreachable, let found = find(key) {
            exchange.note(isUnreachable ? "offline" : "not modified", asDecision: true)
            var answer = found.response
            answer.content = .bytes(found.content)
            return .replace(with: answer)
        }
        guard response.status == .ok, response.fields.contains(.etag) else { return .pass }
        let head = response
        exchange.filterResponseContent(
            with: Copy { content in
                self.stored.withLock { $0[key] = Stored(response: head, content: content) }
            })
        return .pass
    }

    private func find(_ key: String) -> Stored? { stored.withLock { $0[key] } }

    private enum Key: ExchangeKey { typealias Value = String }

    /// Lets content pass as it is, and gives all of it to a closure at its end.
    private final class Copy: ContentFilter {
        private var content: [UInt8] = []
        private let atEnd: ([UInt8]) -> Void
        var keepsLength: Bool { true }

        init(atEnd: @escaping ([UInt8]) -> Void) { self.atEnd = atEnd }

        func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
            content.append(contentsOf: input)
            output.append(contentsOf: input)
        }

        func finish(into output: inout [UInt8]) { atEnd(content) }
    }
}
