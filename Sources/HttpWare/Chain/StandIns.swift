// Stand-ins for room Chain until it is merged; delete this file then.

public struct WareName: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let text: String
    public init(stringLiteral text: String) { self.text = text }
    public var description: String { text }
}

public protocol Middleware: Sendable {}

public protocol Postware: Sendable {}

public protocol ConfigurableWare: Sendable {
    static var name: WareName { get }
    init(options: inout OptionsReader)
}

public enum WareOrder: Int, Sendable, Comparable {
    case first, early, middle, late, last
    public static func < (left: WareOrder, right: WareOrder) -> Bool { left.rawValue < right.rawValue }
}
