/// The progress of a transfer.
public struct TransferProgress: Sendable, Equatable {
    public enum Direction: Sendable { case sent, received }

    public let direction: Direction
    /// The number of transferred bytes.
    public let bytes: Int
    /// The total number of bytes, if known.
    public let total: Int?

    public init(direction: Direction, bytes: Int, total: Int?) {
        self.direction = direction
        self.bytes = bytes
        self.total = total
    }

    /// From 0 to 1, if the total is known.
    public var fraction: Double? { total.map { $0 == 0 ? 1 : Double(bytes) / Double($0) } }
}
