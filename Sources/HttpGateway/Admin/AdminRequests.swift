import HttpWare
import Synchronization

extension AdminEndpoint {
    /// The last exchanges that ended, one of them, and each exchange when it ends.
    static func requests(_ subject: AdminSubject) -> [AdminEndpoint] {
        let streams = StreamCount()
        return [
            AdminEndpoint(path: "/v1/requests", access: .known) { request, _ in
                .abort(with: recent(request, subject.records))
            },
            AdminEndpoint(path: "/v1/requests/*", access: .known) { request, _ in
                guard let found = subject.records?.find(String(request.argument)) else {
                    return .abort(with: .problem(.notFound, "no exchange with this number or id is kept"))
                }
                return .abort(with: .json(text: ExchangeReport(found).json))
            },
            AdminEndpoint(path: "/v1/events", access: .known) { _, _ in
                guard let records = subject.records, let events = RecordEvents(records, streams) else {
                    return .abort(
                        with: .problem(.serviceUnavailable, "\(StreamCount.most) event streams are already open"))
                }
                return .abort(
                    with: HttpResponse(.ok, fields: ["Content-Type": "text/event-stream"], source: events))
            },
        ]
    }

    private static func recent(_ request: AdminRequest, _ records: RequestRecords?) -> HttpResponse {
        var limit = 100
        if let text = request.parameter("limit") {
            guard let number = Int(text), (1...RequestRecords.mostRecords).contains(number) else {
                return .problem(.badRequest, "limit is a number from 1 to \(RequestRecords.mostRecords)")
            }
            limit = number
        }
        let reports = records?.recent(limit).map { ExchangeReport($0).json } ?? []
        return .json(text: "[" + reports.joined(separator: ",\n") + "]")
    }
}

extension HttpResponse {
    /// A response whose content is JSON already.
    fileprivate static func json(text: String) -> HttpResponse {
        HttpResponse(.ok, fields: ["Content-Type": "application/json"], content: .text(text + "\n"))
    }
}

/// How many streams of events are open.
final class StreamCount: Sendable {
    private let count = Atomic(0)
    /// Each costs the admin loop time for every exchange.
    static let most = 16

    /// Takes a place; false when there is none.
    func takePlace() -> Bool {
        if count.add(1, ordering: .relaxed).newValue <= StreamCount.most { return true }
        giveBack()
        return false
    }

    func giveBack() { count.subtract(1, ordering: .relaxed) }
}
