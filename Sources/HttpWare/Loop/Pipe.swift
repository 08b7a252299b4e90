import CSystemShims
import Glibc

/// A pipe in the kernel: bytes go through it from one socket to another without being copied to us. splice(2).
///
/// Used on its loop's thread only. The last reference closes it.
final class Pipe: UnseenBytes {
    /// How many bytes are in it.
    private(set) var count = 0
    private let readEnd: Int32
    private let writeEnd: Int32

    /// How much it holds: as much as a read takes at most.
    static let size = 256 * 1024
    /// A pipe that holds less costs more calls than it saves copies.
    private static let leastSize = 64 * 1024

    /// `nil` when the system has no descriptor, or no memory for pipes, to give.
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

    /// Takes what is there at a socket, at most so much. Only an empty pipe is filled: of a full one the system says what it
    /// says of a socket without bytes.
    func fill(from socket: Int32, atMost most: Int) -> Socket.Transfer {
        let result = Pipe.move(from: socket, to: writeEnd, min(most, 1 << 30))
        if case .bytes(let moved) = result {
            if moved == 0 { return .end }
            count += moved
        }
        return result
    }

    /// Takes pages of memory that nobody changes any more, as many as it holds.
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

    /// Gives a socket what it takes.
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
