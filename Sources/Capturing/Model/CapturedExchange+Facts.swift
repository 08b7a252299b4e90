extension CapturedExchange {
    /// The host of the target URI, without user, port and brackets.
    public var host: String {
        var url = url
        return url.withUTF8 { String(decoding: TargetHost.range(in: UnsafeRawBufferPointer($0)), as: UTF8.self) }
    }

    /// What filters ask of its record; `nil` without one.
    public var summaryOfRecord: ReportSummary? { summary ?? record?.summary }

    /// The bytes of content that came from the client and went to it.
    public var contentSize: Int {
        let (sum, overflows) = request.content.size.addingReportingOverflow(response?.content.size ?? 0)
        return overflows ? .max : sum
    }
}

/// A capture that is kept: passed around without a copy of its parts.
final class CapturedBox: Sendable {
    let exchange: CapturedExchange

    init(_ exchange: consuming CapturedExchange) { self.exchange = exchange }
}
