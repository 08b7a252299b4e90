import Capturing
import HttpWare
import Synchronization

extension AdminEndpoint {
    /// The last ended exchanges, a single one, and a stream of exchanges as they end.
    static func requests(_ subject: AdminSubject) -> [AdminEndpoint] {
        let streams = StreamCount()
        return [
            AdminEndpoint(path: "/v1/requests", access: .known) { request, _ in
                request.parameter("filter") == nil
                    ? .abort(with: recent(request, subject.records)) : matching(request, subject.captures)
            },
            AdminEndpoint(path: "/v1/requests/*", access: .known) { request, _ in
                guard let found = subject.records?.find(String(request.argument)) else {
                    return .abort(with: .problem(.notFound, "no exchange with this number or id is kept"))
                }
                return .abort(with: .json(text: ExchangeReport(found).json))
            },
            AdminEndpoint(path: "/v1/events", access: .known) { request, _ in
                if request.parameter("filter") != nil {
                    guard let store = subject.captures else { return .abort(with: withoutCaptures) }
                    return filtered(request) { filter in
                        EventFeed.response(CaptureEvents(store, filter, form: .records), streams)
                    }
                }
                guard let records = subject.records else {
                    return .abort(with: .problem(.serviceUnavailable, "no records of exchanges are kept"))
                }
                return .abort(with: EventFeed.response(RecordEvents(records), streams))
            },
        ]
    }

    private static let withoutCaptures = HttpResponse.problem(
        .conflict, "a filter selects captures, and nothing is captured; write admin.capture")

    /// The records of the last captures that match the filter.
    private static func matching(_ request: AdminRequest, _ store: CaptureStore?) -> Verdict {
        guard let store else { return .abort(with: withoutCaptures) }
        guard let limit = limit(request) else { return .abort(with: badLimit) }
        return filtered(request) { filter in
            let ids = store.ids(filter: filter, limit: limit)
            let reports = ids.compactMap { store.find($0)?.report?.json }
            return .json(text: "[" + reports.joined(separator: ",\n") + "]")
        }
    }

    private static let badLimit = HttpResponse.problem(
        .badRequest, "limit is a number from 1 to \(RequestRecords.mostRecords)")

    /// The parameter `limit`; `nil` if it is invalid.
    private static func limit(_ request: AdminRequest) -> Int? {
        guard let text = request.parameter("limit") else { return 100 }
        return Int(text).flatMap { (1...RequestRecords.mostRecords).contains($0) ? $0 : nil }
    }

    private static func recent(_ request: AdminRequest, _ records: RequestRecords?) -> HttpResponse {
        guard let limit = limit(request) else { return badLimit }
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

/// Counts open event streams.
final class StreamCount: Sendable {
    private let count = Atomic(0)
    /// The maximum number. Each stream costs the admin loop time for every exchange.
    static let most = 16

    /// Takes a place; false if all are taken.
    func takePlace() -> Bool {
        if count.add(1, ordering: .relaxed).newValue <= StreamCount.most { return true }
        giveBack()
        return false
    }

    func giveBack() { count.subtract(1, ordering: .relaxed) }
}
