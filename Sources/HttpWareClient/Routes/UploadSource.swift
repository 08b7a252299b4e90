import Glibc
import HttpWare

/// Supplies content in pieces, on a thread that may block. Used by one upload.
protocol UploadSource: AnyObject, Sendable {
    /// The next piece; `nil` at the end. Throws the error that makes the content incomplete.
    func next() async throws -> [UInt8]?
}

/// The pieces of a sequence.
///
/// Unchecked: one task calls `next`, one call at a time.
final class SequenceSource<Pieces: AsyncSequence>: UploadSource, @unchecked Sendable where Pieces.Element == [UInt8] {
    private var iterator: Pieces.AsyncIterator

    init(_ pieces: Pieces) { iterator = pieces.makeAsyncIterator() }

    func next() async throws -> [UInt8]? {
        var iterator = self.iterator
        defer { self.iterator = iterator }
        return try await iterator.next()
    }
}

/// A part of a file, read in pieces of 256 KiB. Reading blocks, so it must not run on a loop.
///
/// Unchecked: one task calls `next`, one call at a time.
final class FileUploadSource: UploadSource, @unchecked Sendable {
    private let descriptor: Int32
    private let path: String
    private var left: Int
    private static let piece = 256 << 10

    /// Opens the file, which must have at least `length` bytes.
    init(path: String, length: Int) throws {
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileFault(path, "cannot be read") }
        self.path = path
        left = length
    }

    deinit { close(descriptor) }

    func next() async throws -> [UInt8]? {
        guard left > 0 else { return nil }
        let wanted = min(left, FileUploadSource.piece)
        var count = 0
        let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, filled in
            repeat { count = read(descriptor, buffer.baseAddress, wanted) } while count < 0 && errno == EINTR
            filled = max(0, count)
        }
        if count < 0 { throw FileFault(path, "cannot be read") }
        if count == 0 { throw FileFault(path: path, "became shorter while it was sent") }
        left -= count
        return piece
    }
}

/// Sources in sequence.
///
/// Unchecked: one task calls `next`, one call at a time.
final class JoinedSource: UploadSource, @unchecked Sendable {
    private var rest: ArraySlice<@Sendable () throws -> any UploadSource>
    private var present: (any UploadSource)?

    init(_ sources: [@Sendable () throws -> any UploadSource]) { rest = sources[...] }

    func next() async throws -> [UInt8]? {
        while true {
            if let present, let piece = try await present.next() { return piece }
            guard let following = rest.popFirst() else { return nil }
            present = try following()
        }
    }
}

/// Bytes in memory, as a source.
final class BytesSource: UploadSource, Sendable {
    private let bytes: OneTime<[UInt8]>

    init(_ bytes: [UInt8]) { self.bytes = OneTime(bytes) }

    func next() async throws -> [UInt8]? { bytes.take() }
}

/// A failed operation on a file.
public struct FileFault: Error, Sendable, CustomStringConvertible {
    /// The file.
    public let path: String
    /// The operation that failed, and the reason.
    public let reason: String

    /// A fault with the system's reason.
    init(_ path: String, _ what: String) {
        self.path = path
        reason = "\(what): \(SystemError.text(of: errno))"
    }

    init(path: String, _ reason: String) {
        self.path = path
        self.reason = reason
    }

    public var description: String { "\(path): \(reason)" }
}
