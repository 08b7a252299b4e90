import Foundation
import HTTPTypes

// The part of swift-openapi-runtime that its transports use: the same names and forms. The package does not depend on it.

protocol ClientTransport: Sendable {
    func send(
        _ request: HTTPRequest, body: HTTPBody?, baseURL: URL, operationID: String
    ) async throws -> (HTTPResponse, HTTPBody?)
}

/// A body of pieces, for one reader.
final class HTTPBody: AsyncSequence, Sendable {
    typealias ByteChunk = ArraySlice<UInt8>
    typealias Element = ByteChunk

    enum IterationBehavior: Sendable { case single, multiple }

    enum Length: Sendable, Equatable {
        case unknown
        case known(Int64)
    }

    typealias AsyncIterator = AsyncThrowingStream<ByteChunk, any Error>.Iterator

    let length: Length
    let iterationBehavior: IterationBehavior
    private let pieces: AsyncThrowingStream<ByteChunk, any Error>

    init<Bytes: AsyncSequence & Sendable>(_ sequence: Bytes, length: Length, iterationBehavior: IterationBehavior)
    where Bytes.Element == ByteChunk {
        self.length = length
        self.iterationBehavior = iterationBehavior
        pieces = AsyncThrowingStream { continuation in
            Task {
                do {
                    for try await piece in sequence { continuation.yield(piece) }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
        }
    }

    convenience init(_ text: String) {
        let pieces = AsyncStream<ByteChunk> { continuation in
            for byte in text.utf8 { continuation.yield([byte]) }
            continuation.finish()
        }
        self.init(pieces, length: .known(Int64(text.utf8.count)), iterationBehavior: .single)
    }

    func makeAsyncIterator() -> AsyncIterator { pieces.makeAsyncIterator() }

    /// All of the body as text.
    func text() async throws -> String {
        var all: [UInt8] = []
        for try await piece in self { all += piece }
        return String(decoding: all, as: UTF8.self)
    }
}
