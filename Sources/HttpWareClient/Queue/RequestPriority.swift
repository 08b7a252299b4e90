/// The order of waiting requests.
public enum RequestPriority: Int, Sendable, Comparable, CaseIterable {
    case low, normal, high

    public static func < (left: RequestPriority, right: RequestPriority) -> Bool { left.rawValue < right.rawValue }
}
