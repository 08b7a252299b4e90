/// The error that a ware threw, as it was: for a client in the same process, to which it may mean something.
public struct ThrownByWare: ExchangeKey {
    public typealias Value = ThrownByWare

    /// The ware's label.
    public let label: String
    public let error: any Error
}
