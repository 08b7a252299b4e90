/// A set of status codes: `502`, a class `5xx`, a range `500-599`, or a list of these.
public struct StatusSet: Sendable, Hashable, CustomStringConvertible {
    /// The ranges, sorted and without overlaps.
    public private(set) var ranges: [ClosedRange<Int>]

    /// Makes a set from ranges, in any order.
    public init(_ ranges: [ClosedRange<Int>]) {
        self.ranges = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = self.ranges.last, range.lowerBound <= last.upperBound + 1 {
                self.ranges[self.ranges.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                self.ranges.append(range)
            }
        }
    }

    /// Makes a set of one range.
    public init(_ range: ClosedRange<Int>) { self.init([range]) }

    /// All possible statuses. RFC 9110 §15.
    public static let all = StatusSet([100...999])

    /// The range from the lowest code to the highest; `nil` if the set is empty.
    var bounds: ClosedRange<Int>? {
        guard let first = ranges.first, let last = ranges.last else { return nil }
        return first.lowerBound...last.upperBound
    }

    /// Whether the code is in the set.
    public func contains(_ status: Int) -> Bool {
        for range in ranges where range.contains(status) { return true }
        return false
    }

    /// Whether the set contains no code.
    public var isEmpty: Bool { ranges.isEmpty }

    public var description: String {
        ranges.map { range in
            if range.count == 1 { return "\(range.lowerBound)" }
            if range.count == 100, range.lowerBound % 100 == 0 { return "\(range.lowerBound / 100)xx" }
            return "\(range.lowerBound)-\(range.upperBound)"
        }.joined(separator: ", ")
    }
}

extension StatusSet: ExpressibleByArrayLiteral {
    /// Makes a set of codes and ranges: `[404, 410...412]`.
    public init(arrayLiteral members: any StatusCodes...) { self.init(members.map(\.statusCodes)) }
}

/// A member of a `StatusSet` in code: a status code, or a range of them.
public protocol StatusCodes {
    /// The codes.
    var statusCodes: ClosedRange<Int> { get }
}

extension Int: StatusCodes { public var statusCodes: ClosedRange<Int> { self...self } }
extension ClosedRange<Int>: StatusCodes { public var statusCodes: ClosedRange<Int> { self } }
extension HttpStatus: StatusCodes { public var statusCodes: ClosedRange<Int> { code...code } }

extension StatusSet: OptionUnion {
    public static let optionType = "set of statuses"
    public static var optionForm: OptionForm {
        .either([.whole(100...599), .pattern("[1-5]xx"), .pattern("[1-5][0-9]{2}-[1-5][0-9]{2}")])
    }
    public var optionText: String { "[\(description)]" }

    /// Makes the union of several sets.
    public init(union members: [StatusSet]) { self.init(members.flatMap(\.ranges)) }

    public init(optionText: String) throws(OptionMistake) {
        guard let range = Self.range(optionText) else {
            throw OptionMistake("write a status from 100 to 599, a class such as 5xx, or a range such as 500-599")
        }
        self.init([range])
    }

    private static func range(_ text: String) -> ClosedRange<Int>? {
        let bytes = Array(text.utf8)
        if bytes.count == 3, bytes[1...] == [UInt8(ascii: "x"), UInt8(ascii: "x")], (0x31...0x35).contains(bytes[0]) {
            let first = Int(bytes[0] - 0x30) * 100
            return first...first + 99
        }
        let ends = bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).map(code)
        guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last else {
            return nil
        }
        return first...last
    }

    private static func code(_ digits: ArraySlice<UInt8>) -> Int? {
        UnitText.number(digits).flatMap { (100...599).contains($0) ? $0 : nil }
    }
}

extension StatusSet {
    /// Whether the status is in the set.
    public func contains(_ status: HttpStatus) -> Bool { contains(status.code) }
}
