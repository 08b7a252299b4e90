public import HttpWare

/// The times of a request and its response, and the age that the response states: the input of the current age. RFC
/// 9111 §4.2.3.
public struct MessageTimes: Sendable, Equatable {
    /// `request_time`: the clock when the request was sent.
    public var requested: WallTime
    /// `response_time`: the clock when the response was received.
    public var received: WallTime
    /// `date_value`: the `Date` field; without a valid one, the time of receipt. RFC 9110 §6.6.1.
    public var date: WallTime
    /// `age_value`: the `Age` field in seconds, 0 without one.
    public var age: Int64

    public init(requested: WallTime, received: WallTime, date: WallTime, age: Int64) {
        self.requested = requested
        self.received = received
        self.date = date
        self.age = age
    }

    /// Reads `Date` and `Age` of a response with these times. Of several members of `Age`, the first counts; an invalid
    /// one is ignored. RFC 9111 §5.1.
    public init(_ fields: HttpFields, requested: WallTime, received: WallTime) {
        let date = fields.time(of: .date, now: received)
        let age = fields.listMembers(of: .age).first.flatMap { DeltaSeconds.read($0) }
        self.init(requested: requested, received: received, date: date ?? received, age: age ?? 0)
    }

    /// `corrected_initial_age`, in nanoseconds: the age when the response was received.
    public var initialAge: Int64 {
        let apparent = max(0, MessageTimes.nanoseconds(from: date, to: received))
        let delay = max(0, MessageTimes.nanoseconds(from: requested, to: received))
        let (told, overflow) = (age * 1_000_000_000).addingReportingOverflow(delay)
        return max(apparent, overflow ? .max : told)
    }

    /// `current_age`, in nanoseconds.
    public func currentAge(at now: WallTime) -> Int64 {
        let resident = max(0, MessageTimes.nanoseconds(from: received, to: now))
        let (age, overflow) = initialAge.addingReportingOverflow(resident)
        return overflow ? .max : age
    }

    /// The time between two points of the clock, limited to the range of 64 bits (292 years).
    static func nanoseconds(from start: WallTime, to end: WallTime) -> Int64 {
        let (seconds, tooLong) = (end.seconds &- start.seconds).multipliedReportingOverflow(by: 1_000_000_000)
        if tooLong { return end < start ? .min / 2 : .max / 2 }
        return seconds + Int64(end.nanoseconds) - Int64(start.nanoseconds)
    }
}
