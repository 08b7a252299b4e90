import HttpWare

/// The values of JSON lines, one per line.
public struct ContentValues<Model: Decodable & Sendable>: AsyncSequence, Sendable {
    public typealias Element = Model

    let lines: ContentLines
    let decoder: any ModelDecoder
    let failure: StreamFailure

    public func makeAsyncIterator() -> Iterator {
        Iterator(lines: lines.makeAsyncIterator(), decoder: decoder, failure: failure)
    }

    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var lines: ContentLines.Iterator
        fileprivate let decoder: any ModelDecoder
        fileprivate let failure: StreamFailure

        /// The next value; `nil` at the end. Throws an `HttpError` for a line that cannot be decoded.
        public mutating func next() async throws -> Model? {
            while let line = try await lines.next() {
                if line.utf8.allSatisfy(TextBytes.isSpace) { continue }
                let content = Array(line.utf8)
                do {
                    return try decoder.decode(Model.self, from: content)
                } catch {
                    var problem = HttpError(
                        .upstream, .decoding, .decoding, "a line is not \(Model.self)", underlying: error)
                    problem.problem = DecodingProblem(error, content: content)
                    throw problem.about(failure.route, failure.request, failure.response)
                }
            }
            return nil
        }
    }
}
