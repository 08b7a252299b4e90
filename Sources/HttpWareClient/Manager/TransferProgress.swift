/// How far content has come.
public struct TransferProgress: Sendable, Equatable {
    public enum Direction: Sendable { case sent, received }

    public let direction: Direction
    /// So much of it.
    public let bytes: Int
    /// Of so much, where that is known.
    public let total: Int?

    public init(direction: Direction, bytes: Int, total: Int?) {
        self.direction = direction
        self.bytes = bytes
        self.total = total
    }

    /// From 0 to 1, where the whole is known.
    public var fraction: Double? { total.map { $0 == 0 ? 1 : Double(bytes) / Double($0) } }
}
