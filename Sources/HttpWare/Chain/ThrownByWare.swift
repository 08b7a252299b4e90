/// The original error of a ware that threw: for a client in the same process, which may know its type.
public struct ThrownByWare: ExchangeKey {
    public typealias Value = ThrownByWare

    /// The ware's label.
    public let label: String
    public let error: any Error
}
