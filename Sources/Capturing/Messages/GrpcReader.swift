public import HttpWare

/// Reads the messages of one direction of gRPC while the content arrives: a flag, a length, the message. gRPC over HTTP/2,
/// `Length-Prefixed-Message`.
///
/// A compressed message is decoded by `grpc-encoding` if all of it is kept. Memory is limited: only the beginning of a message is
/// kept.
public struct GrpcReader {
    private let direction: CapturedPiece.Direction
    private let encoding: String?
    private let limit: Int
    private var head: [UInt8] = []
    private var left = 0
    private var isCompressed = false
    private var isTrailers = false
    private var message: PieceBuffer

    /// A reader for one direction, with the value of `grpc-encoding`. Keeps at most `limit` bytes of each message.
    public init(_ direction: CapturedPiece.Direction, encoding: String?, limit: Int) {
        self.direction = direction
        self.encoding = encoding
        self.limit = max(0, limit)
        message = PieceBuffer(limit: limit)
    }

    /// Reads bytes; returns the messages that they complete.
    public mutating func read(_ input: UnsafeRawBufferPointer, at time: WallTime) -> [CapturedPiece] {
        var pieces: [CapturedPiece] = []
        var rest = input[...]
        while true {
            if head.count < 5 {
                let part = rest.prefix(5 - head.count)
                head.append(contentsOf: part)
                rest = rest.dropFirst(part.count)
                guard head.count == 5 else { break }
                isCompressed = head[0] & 0x01 != 0
                // gRPC-Web marks its trailers with this bit.
                isTrailers = head[0] & 0x80 != 0
                left = head[1...].reduce(0) { $0 << 8 | Int($1) }
            }
            let part = rest.prefix(left)
            rest = rest.dropFirst(part.count)
            left -= part.count
            message.append(UnsafeRawBufferPointer(rebasing: part))
            guard left == 0 else { break }
            head.removeAll(keepingCapacity: true)
            let (bytes, size) = message.take()
            if !isTrailers { pieces.append(piece(bytes, size, time)) }
        }
        return pieces
    }

    /// The maximum number of bytes that a message is decoded to, since that is done on a loop.
    private static let mostDecoded = 1 << 20

    private func piece(_ bytes: [UInt8], _ size: Int, _ time: WallTime) -> CapturedPiece {
        var piece = CapturedPiece(direction, .grpc, time: time, data: bytes, size: size)
        guard isCompressed, let encoding, let decoder = ContentDecoder([encoding]) else { return piece }
        var decoded: [UInt8] = []
        var isWhole = bytes.count == size
        do {
            let isAll = try decoder.decode(bytes, into: &decoded, upTo: GrpcReader.mostDecoded)
            isWhole = isWhole && isAll
            if isWhole { try decoder.finish() }
        } catch {
            return piece
        }
        piece.size = isWhole ? decoded.count : max(size, decoded.count)
        decoded.removeLast(max(0, decoded.count - limit))
        piece.data = decoded
        return piece
    }
}
