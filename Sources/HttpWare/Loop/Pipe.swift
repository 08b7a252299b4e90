import CSystemShims
import Glibc

/// A pipe in the kernel: bytes move through it from one socket to another without a copy in this process. splice(2).
///
/// Used on its loop's thread only. The last reference closes it.
final class Pipe: UnseenBytes {
    /// The number of bytes in the pipe.
    private(set) var count = 0
    private let readEnd: Int32
    private let writeEnd: Int32

    /// The capacity: the maximum of one read.
    static let size = 256 * 1024
    /// A smaller pipe would cost more calls than it saves copies.
    private static let leastSize = 64 * 1024

    /// `nil` if the system has no descriptor, or no memory for pipes, left.
    init?() {
        var ends: [Int32] = [-1, -1]
        let size = csystem_pipe(&ends, Int32(Pipe.size))
        readEnd = ends[0]
        writeEnd = ends[1]
        if size < Int32(Pipe.leastSize) { return nil }
    }

    deinit {
        if readEnd >= 0 { Socket.close(readEnd) }
        if writeEnd >= 0 { Socket.close(writeEnd) }
    }

    /// Takes the available bytes of a socket, at most `most`. The pipe must be empty: for a full pipe the system reports the
    /// same as for a socket without bytes.
    func fill(from socket: Int32, atMost most: Int) -> Socket.Transfer {
        let result = Pipe.move(from: socket, to: writeEnd, min(most, 1 << 30))
        if case .bytes(let moved) = result {
            if moved == 0 { return .end }
            count += moved
        }
        return result
    }

    /// Takes memory pages that are not changed any more, as many as it can hold.
    func fill(from pages: UnsafeRawBufferPointer) -> Socket.Transfer {
        while true {
            let taken = csystem_splice_memory(writeEnd, pages.baseAddress, UInt(pages.count))
            if taken >= 0 {
                count += taken
                return .bytes(taken)
            }
            if errno != EINTR { return errno == EAGAIN ? .wouldBlock : .failed(errno) }
        }
    }

    var pipe: Pipe? { self }

    /// Sends as much as the socket takes.
    func drain(to socket: Int32) -> Socket.Transfer {
        let result = Pipe.move(from: readEnd, to: socket, count)
        if case .bytes(let moved) = result { count -= moved }
        return result
    }

    private static func move(from: Int32, to: Int32, _ most: Int) -> Socket.Transfer {
        while true {
            let moved = csystem_splice(from, to, UInt(most))
            if moved >= 0 { return .bytes(moved) }
            if errno != EINTR { return errno == EAGAIN ? .wouldBlock : .failed(errno) }
        }
    }
}
