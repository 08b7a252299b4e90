extension CapturedExchange {
    /// The host of the target URI, without user, port and brackets.
    public var host: String {
        var url = url
        return url.withUTF8 { String(decoding: TargetHost.range(in: UnsafeRawBufferPointer($0)), as: UTF8.self) }
    }

    /// The summary of its record, which filters read; `nil` without a record.
    public var summaryOfRecord: ReportSummary? { summary ?? record?.summary }

    /// The size of both contents in bytes.
    public var contentSize: Int {
        let (sum, overflows) = request.content.size.addingReportingOverflow(response?.content.size ?? 0)
        return overflows ? .max : sum
    }
}

/// A capture, which is passed around without copying its parts.
final class CapturedBox: Sendable {
    let exchange: CapturedExchange

    init(_ exchange: consuming CapturedExchange) { self.exchange = exchange }
}
