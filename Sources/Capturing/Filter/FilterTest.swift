import HttpWare

/// One operator of a filter with its argument.
enum FilterTest: Sendable {
    /// One side of an exchange, or either side.
    enum Side: Sendable { case request, response, either }

    case always(Bool)
    case url(FilterPattern)
    case domain(FilterPattern)
    case method(FilterPattern)
    case status(NumberRange)
    case fields(Side, FilterPattern)
    case content(Side, FilterPattern)
    case contentType(Side, FilterPattern)
    case hasNoResponse
    case hasResponse
    case hasFault
    case isError
    case isAsset
    case source(FilterPattern)
    case destination(FilterPattern)
    case comment(FilterPattern)
    case isMarked
    case marker(FilterPattern)
    case meta(FilterPattern)
    case kind(CapturedExchange.Kind)
    case isReplay(Side)
    case route(FilterPattern)
    case service(FilterPattern)
    case ware(FilterPattern)
    case decision(FilterPattern)
    case duration(Comparison, Int64)
    case size(Comparison, Int)
    case id(NumberRange)
    case operation(FilterPattern)

    /// The comparison of a quantity.
    enum Comparison: String, Sendable, CaseIterable {
        case greaterOrEqual = ">="
        case lessOrEqual = "<="
        case greater = ">"
        case less = "<"
        case equal = "="

        func holds<T: Comparable>(_ left: T, _ right: T) -> Bool {
            switch self {
            case .greaterOrEqual: left >= right
            case .lessOrEqual: left <= right
            case .greater: left > right
            case .less: left < right
            case .equal: left == right
            }
        }
    }

    /// Whether the row of an exchange is not enough to answer it.
    var needsMore: Bool {
        switch self {
        case .fields, .content: true
        default: false
        }
    }

    /// The phase after which its answer no longer changes.
    var phase: CapturePhase {
        switch self {
        case .status, .fields(.response, _), .fields(.either, _), .contentType(.response, _), .contentType(.either, _),
            .isAsset, .destination, .kind(.websocket), .kind(.sse), .isReplay(.response), .isReplay(.either):
            .responseHead
        case .content(.request, _), .operation: .requestContent
        case .content(.response, _), .content(.either, _), .size: .responseContent
        case .hasFault, .isError, .ware, .decision, .duration: .end
        default: .requestHead
        }
    }
}

/// Numbers between two bounds, which belong to it. It is empty if `low` is above `high`.
struct NumberRange: Sendable, Equatable {
    var low: Int
    var high: Int

    func contains(_ number: Int?) -> Bool {
        guard let number else { return false }
        return low <= number && number <= high
    }
}

/// A filter as a tree.
indirect enum FilterNode: Sendable {
    case all([FilterNode])
    case any([FilterNode])
    case not(FilterNode)
    /// With the position of the operator: the number of the character, from 1.
    case test(FilterTest, column: Int)

    /// Whether a test in the tree meets the condition.
    func contains(_ isWanted: (FilterTest) -> Bool) -> Bool {
        switch self {
        case .all(let nodes), .any(let nodes): nodes.contains { $0.contains(isWanted) }
        case .not(let node): node.contains(isWanted)
        case .test(let test, _): isWanted(test)
        }
    }
}
