/// Passes content through filters, one behind the other, in steps of bounded size.
///
/// Each call does one step: at most `piece` bytes enter the first filter, or one filter gives more of its output. The caller
/// passes that output on, and takes the next step in a later turn of the loop, when more can be passed on.
final class FilterPath {
    /// The maximum number of bytes that enter the filters at once. The slowest filter, compression, needs some milliseconds for them.
    static let piece = 64 << 10

    private let filters: [any ContentFilter]
    /// Input that has not entered the filters.
    private var waiting: [UInt8] = []
    private var from = 0
    private var isEnded = false
    /// The number of filters that have finished.
    private var finished = 0
    /// Whether the caller has arranged its next step.
    var isStepDue = false

    init(_ filters: [any ContentFilter]) { self.filters = filters }

    /// A path whose content is complete.
    init(_ filters: [any ContentFilter], whole content: [UInt8]) {
        self.filters = filters
        waiting = content
        isEnded = true
    }

    /// Whether a further step is needed, apart from further input.
    var isPending: Bool {
        from < waiting.count || isEnded && finished < filters.count || filters.contains { $0.isPending }
    }

    /// Whether the content has ended, and everything has left the filters.
    var isDone: Bool { isEnded && !isPending }

    /// Whether a filter holds content back that it could release.
    var holdsBack: Bool { filters.contains { $0.holdsBack } }

    /// Takes a piece of content. Returns what leaves the last filter.
    func push(_ bytes: UnsafeRawBufferPointer) throws -> [UInt8] {
        if isPending {
            waiting.append(contentsOf: bytes)
            return []
        }
        guard bytes.count > FilterPath.piece, !filters.isEmpty else { return try FilterPath.pass(bytes, filters[...]) }
        waiting.append(contentsOf: bytes[FilterPath.piece...])
        return try FilterPath.pass(UnsafeRawBufferPointer(rebasing: bytes[..<FilterPath.piece]), filters[...])
    }

    /// The content has ended. Further steps tell the filters.
    func end() { isEnded = true }

    /// Takes the next step. Returns what leaves the last filter.
    func step() throws -> [UInt8] {
        var output: [UInt8] = []
        // The filter that is nearest to the end comes first, so that no other filter has to keep its output.
        if let index = filters.lastIndex(where: { $0.isPending }) {
            var more: [UInt8] = []
            try filters[index].more(into: &more)
            output = try FilterPath.pass(more, filters[(index + 1)...])
        } else if from < waiting.count {
            let end = min(waiting.count, from + FilterPath.piece)
            output = try waiting.withUnsafeBytes {
                try FilterPath.pass(UnsafeRawBufferPointer(rebasing: $0[from..<end]), filters[...])
            }
            from = end
            if from == waiting.count {
                waiting = []
                from = 0
            }
        }
        while isEnded, finished < filters.count, waiting.isEmpty, !filters.contains(where: { $0.isPending }) {
            var rest: [UInt8] = []
            try filters[finished].finish(into: &rest)
            finished += 1
            if !rest.isEmpty { output += try FilterPath.pass(rest, filters[finished...]) }
        }
        return output
    }

    /// The content pauses: returns what the filters have held back.
    func flush() throws -> [UInt8] {
        var output: [UInt8] = []
        for (index, filter) in filters.enumerated() {
            var held: [UInt8] = []
            try filter.flush(into: &held)
            if !held.isEmpty { output += try FilterPath.pass(held, filters[(index + 1)...]) }
        }
        return output
    }

    /// Passes bytes through filters at once.
    private static func pass(_ bytes: [UInt8], _ filters: ArraySlice<any ContentFilter>) throws -> [UInt8] {
        if filters.isEmpty || bytes.isEmpty { return bytes }
        return try bytes.withUnsafeBytes { try pass($0, filters) }
    }

    private static func pass(
        _ bytes: UnsafeRawBufferPointer, _ filters: ArraySlice<any ContentFilter>
    ) throws -> [UInt8] {
        guard let first = filters.first else { return Array(bytes) }
        var output: [UInt8] = []
        try first.filter(bytes, into: &output)
        for next in filters.dropFirst() {
            var further: [UInt8] = []
            try output.withUnsafeBytes { try next.filter($0, into: &further) }
            output = further
        }
        return output
    }
}

/// Content that is held whole and passes the filters step by step; the output is held as well.
final class FilteredWhole {
    let path: FilterPath
    /// The number of bytes before the filters.
    let count: Int
    /// The output of the filters so far.
    private(set) var output: [UInt8] = []

    init(_ input: [UInt8], _ filters: [any ContentFilter]) {
        path = FilterPath(filters, whole: input)
        count = input.count
    }

    /// Takes the next step.
    func step() throws {
        let result = try path.step()
        if output.isEmpty { output = result } else { output += result }
    }
}

/// A filter's fault that ends the message.
enum FilterFault: Error {
    /// The filter promised to keep the length, and did not.
    case changedLength
}

extension GatewayError {
    /// The failure of a request's content filter, whichever way the content took. A `GatewayError` already carries its fault.
    static func ofRequestFilter(_ error: any Error) -> GatewayError {
        if let error = error as? GatewayError { return error }
        if let fault = error as? ContentDecoder.Fault {
            return GatewayError(.downstream, .requestMalformed, fault.description)
        }
        return GatewayError(.gateway, .wareFailed, "a content filter failed: \(error)")
    }

    /// The failure of a response's content filter, whichever way the content took. A `GatewayError` already carries its fault.
    static func ofResponseFilter(_ error: any Error) -> GatewayError {
        if let error = error as? GatewayError { return error }
        if let fault = error as? ContentDecoder.Fault {
            return GatewayError(.upstream, .responseMalformed, fault.description)
        }
        return GatewayError(.upstream, .wareFailed, "a content filter failed: \(error)")
    }
}
