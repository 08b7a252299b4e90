/// The content of a response, in pieces as they arrive. Each piece is delivered once, to one iterator.
public struct ResponseContent: AsyncSequence, Sendable {
    public typealias Element = [UInt8]

    private let call: HeldCall
    let failure: StreamFailure

    init(_ call: ClientCall, _ failure: StreamFailure) {
        self.call = HeldCall(call.pipe) { call.abandon() }
        self.failure = failure
    }

    /// Content that is available as a whole.
    init(_ bytes: [UInt8], _ failure: StreamFailure) {
        let pipe = ContentPipe(limit: .max) {}
        if !bytes.isEmpty { _ = bytes.withUnsafeBytes { pipe.push($0) } }
        pipe.end(.success(()))
        call = HeldCall(pipe) {}
        self.failure = failure
    }

    public func makeAsyncIterator() -> Iterator { Iterator(call: call, failure: failure) }

    /// The rest of the content in one piece. Throws if it exceeds the limit.
    public func collect(upTo limit: ByteCount) async throws -> [UInt8] {
        var all: [UInt8] = []
        for try await piece in self {
            guard all.count + piece.count <= limit.bytes else {
                throw failure.error(
                    GatewayError(.upstream, .responseContentTooLarge, "the response is larger than \(limit)"))
            }
            all += piece
        }
        return all
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let call: HeldCall
        fileprivate let failure: StreamFailure

        /// The next piece; `nil` at the end. Throws an `HttpError` if the response was cut off, and `CancellationError`
        /// if the task was cancelled, which ends the exchange.
        public mutating func next() async throws -> [UInt8]? {
            do {
                return try await call.pipe?.next()
            } catch let error as GatewayError {
                throw failure.error(error)
            } catch {
                call.abandon()
                throw error
            }
        }
    }
}

/// Ends the exchange when the rest of its response can no longer be read.
private final class HeldCall: Sendable {
    let pipe: ContentPipe?
    let abandon: @Sendable () -> Void

    init(_ pipe: ContentPipe?, abandon: @escaping @Sendable () -> Void) {
        self.pipe = pipe
        self.abandon = abandon
    }

    deinit { abandon() }
}
