public import HttpWare

/// The time window in which a certificate authority suggests to renew a certificate. RFC 9773 §4.2.
public struct RenewalInfo: Sendable, Equatable {
    /// The start of the window.
    public let start: WallTime
    /// The end of the window.
    public let end: WallTime

    /// `nil` unless the window ends after it begins.
    public init?(start: WallTime, end: WallTime) {
        guard start < end else { return nil }
        self.start = start
        self.end = end
    }

    /// Reads renewal information.
    init(_ json: JsonValue) throws(AcmeFailure) {
        guard let start = json["suggestedWindow"]?["start"]?.string.flatMap(WallTime.init(iso8601:)),
            let end = json["suggestedWindow"]?["end"]?.string.flatMap(WallTime.init(iso8601:)),
            let info = RenewalInfo(start: start, end: end)
        else { throw .badAnswer("the renewal information has no valid window") }
        self = info
    }

    /// A moment in the window, by a fraction from 0 to 1. RFC 9773 §4.2: "Select a uniform random time within the suggested window".
    func moment(_ fraction: Double) -> WallTime {
        start + (end - start) * min(max(fraction, 0), 1)
    }
}
