/// Defines the statuses that count as success; others are thrown as errors. Overrides the service definition.
///
/// ```swift
/// HttpManager(service: api, postwares: [StatusCheck(success: 200..<400)])
/// ```
public struct StatusCheck: Postware {
    public var success: StatusSet

    public init(success: Range<Int> = 200..<300) {
        self.success = StatusSet(success.isEmpty ? [] : [success.lowerBound...(success.upperBound - 1)])
    }

    public init(success: ClosedRange<Int>) { self.success = StatusSet([success]) }

    public init(success: StatusSet) { self.success = success }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        let isSuccess = success.contains(response.status.code)
        exchange[Outcome.self] = isSuccess
        if !isSuccess { exchange.note("\(response.status.code) is not a success") }
        return .pass
    }

    /// The ware's result for the response.
    enum Outcome: ExchangeKey { typealias Value = Bool }
}
