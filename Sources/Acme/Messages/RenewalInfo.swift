import Credentials
public import HttpWare

/// When a certificate authority suggests to renew a certificate. RFC 9773 §4.2.
public struct RenewalInfo: Sendable, Equatable {
    /// From when on.
    public let start: WallTime
    /// Until when.
    public let end: WallTime

    /// A window that begins before it ends.
    public init?(start: WallTime, end: WallTime) {
        guard start < end else { return nil }
        self.start = start
        self.end = end
    }

    /// Reads a renewal information.
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
