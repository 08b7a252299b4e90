/// The media types that a client accepts: the first 64 members of `Accept`, as received. RFC 9110 §12.5.1.
public struct AcceptedMedia: Sendable {
    private let ranges: [MediaRange]

    /// `nil` if the request has no `Accept`.
    public init?(_ request: borrowing HttpRequest) {
        var value = ""
        request.fields.received.values(of: .accept).forEach { value += value.isEmpty ? $0 : ",\($0)" }
        if value.isEmpty { return nil }
        ranges = value.split(separator: ",").prefix(64).map(MediaRange.init)
    }

    /// The weight of a type, 0 to 1: that of the most specific range that matches.
    public func quality(of type: String) -> Double {
        let family = type.prefix { $0 != "/" } + "/*"
        let match =
            ranges.first { $0.type == type } ?? ranges.first { $0.type == family }
            ?? ranges.first { $0.type == "*/*" }
        return match?.quality ?? 0
    }

    /// The weight of problem details: as such, or as JSON. RFC 9457.
    public var problemQuality: Double {
        max(quality(of: "application/problem+json"), quality(of: "application/json"))
    }

    /// One member of the field.
    private struct MediaRange: Sendable {
        let type: String
        let quality: Double

        init(_ text: Substring) {
            let parts = text.split(separator: ";", omittingEmptySubsequences: false)
            let trim = { (part: Substring) in part.filter { $0 != " " && $0 != "\t" }.lowercased() }
            type = trim(parts.first ?? "")
            let weight = parts.dropFirst().map(trim).first { $0.hasPrefix("q=") }
            quality = weight.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
        }
    }
}
