/// The path of content in one direction of an exchange: through filters, at a pace, up to a cut, counted against a promised length.
///
/// A path decides what goes on and when; it sends nothing itself. Its owner puts pieces in, and calls `next(at:)` while the other side
/// takes more. Content without filters, pace and cut needs no path. Used on the thread of one loop.
///
/// Work is done in steps of bounded size: at most `piece` bytes enter the first filter, or one filter gives more of its output.
final class ContentPath {
    /// The next thing to do for the content.
    enum Next {
        /// These bytes go on to the other side.
        case passOn([UInt8])
        /// The held bytes may go on after this time: then `wake` is called.
        case waits(Duration)
        /// Such a wait is under way.
        case isWaiting
        /// `step` is to be called in a later turn of the loop.
        case needsStep
        /// Nothing is held that could go on: more content may come.
        case isEmpty
        /// The content is cut here.
        case isCut
        /// The content has ended, and all of it went on. Told once.
        case isOver
    }

    /// A filter's fault that ends the message.
    enum Fault: Error {
        /// The filter promised to keep the length, and did not.
        case changedLength
    }

    /// The maximum number of bytes that enter the filters at once. The slowest filter, compression, needs some milliseconds for them.
    static let piece = 64 << 10

    private let filters: [any ContentFilter]
    private let pace: (any ContentPace)?
    /// The number of bytes after which the content is cut.
    private let cut: Int?
    /// The length that the message states; `nil` if it states none.
    private let stated: Int?
    /// The rest of the length that the filters promised to keep: framing must not depend on their promise.
    private var promised: Int?

    /// The number of bytes that were put in.
    private(set) var taken = 0
    /// Input for the filters, and the number of its bytes that have entered them.
    private var input: [UInt8] = []
    private var inputFrom = 0
    private var isEnded = false
    /// The number of filters that have finished.
    private var finished = 0
    /// Whether a filter has further output for what it took.
    private var hasMore = false

    /// The output of the filters, and the number of its bytes that went on.
    private var output: [UInt8] = []
    private var outputFrom = 0
    private var passed = 0
    /// The number of bytes that the pace lets go now.
    private var granted = 0
    private var isWaiting = false
    private var isOverTold = false

    /// Whether the owner has arranged its next call of `step`.
    var isStepDue = false

    /// Makes the path. `stated` is the length that the message states, before its filters; if all filters keep it, their output is
    /// checked against it.
    init(
        _ filters: [any ContentFilter], pace: (any ContentPace)? = nil, cut: Int? = nil, stated: Int? = nil,
        isPromised: Bool = false
    ) {
        self.filters = filters
        self.pace = pace
        self.cut = cut
        self.stated = stated
        promised = isPromised ? stated : nil
    }

    /// A path whose content is complete: `step` passes it through the filters.
    convenience init(
        whole content: [UInt8], _ filters: [any ContentFilter], pace: (any ContentPace)? = nil, cut: Int? = nil
    ) {
        self.init(filters, pace: pace, cut: cut)
        input = content
        taken = content.count
        isEnded = true
    }

    // MARK: What is held

    /// Whether the filters need a further step, apart from further input.
    private var isPending: Bool { inputFrom < input.count || hasMore || isEnded && finished < filters.count }

    /// Whether the content has ended, and everything has left the filters.
    var isFiltered: Bool { isEnded && !isPending }

    /// Whether content is held that is going to leave without further input.
    var isHolding: Bool { outputFrom < output.count || isPending || isWaiting }

    /// Whether a filter holds content back that it could release.
    var holdsBack: Bool { !isPending && filters.contains { $0.holdsBack } }

    /// The number of bytes that have left the filters, and did not go on yet.
    var heldCount: Int { output.count - outputFrom }

    /// Removes and returns the output of the filters.
    func takeOutput() -> [UInt8] { takeOutput(heldCount) }

    // MARK: In

    /// Takes a piece of content. Throws what a filter throws.
    func take(_ bytes: UnsafeRawBufferPointer) throws {
        taken += bytes.count
        if filters.isEmpty { return output.append(contentsOf: bytes) }
        if isPending { return input.append(contentsOf: bytes) }
        guard bytes.count > ContentPath.piece else { return try filter(bytes) }
        input.append(contentsOf: bytes[ContentPath.piece...])
        try filter(UnsafeRawBufferPointer(rebasing: bytes[..<ContentPath.piece]))
    }

    /// The content has ended. Throws what a filter throws.
    func end() throws {
        guard !isEnded else { return }
        let wasPending = isPending
        isEnded = true
        if !wasPending { try finishFilters() }
    }

    /// Takes the next step through the filters. Throws what a filter throws.
    func step() throws {
        // The filter that is nearest to the end comes first, so that no other filter has to keep its output.
        if hasMore, let index = filters.lastIndex(where: { $0.isPending }) {
            var more: [UInt8] = []
            try filters[index].more(into: &more)
            try put(pass(more, behind: index))
        } else if inputFrom < input.count {
            let end = min(input.count, inputFrom + ContentPath.piece)
            let from = inputFrom
            inputFrom = end
            let bytes = input
            if end == input.count {
                input = []
                inputFrom = 0
            }
            try bytes.withUnsafeBytes { try filter(UnsafeRawBufferPointer(rebasing: $0[from..<end])) }
        }
        if isEnded { try finishFilters() }
    }

    /// The content pauses: releases what the filters hold back. Throws what a filter throws.
    func flush() throws {
        for index in filters.indices {
            var held: [UInt8] = []
            try filters[index].flush(into: &held)
            if !held.isEmpty { try put(pass(held, behind: index)) }
        }
    }

    /// Content that went on has to go on again, before all that is held. It is not filtered or counted again.
    func putBack(_ bytes: [UInt8]) {
        output = bytes + output[outputFrom...]
        outputFrom = 0
        granted = 0
        isOverTold = false
    }

    private func finishFilters() throws {
        while finished < filters.count, input.isEmpty, !hasMore {
            var rest: [UInt8] = []
            try filters[finished].finish(into: &rest)
            finished += 1
            try put(pass(rest, behind: finished - 1))
        }
        if !isPending, let promised, promised > 0 { throw Fault.changedLength }
    }

    private func filter(_ bytes: UnsafeRawBufferPointer) throws {
        var result: [UInt8] = []
        try filters[0].filter(bytes, into: &result)
        try put(pass(result, behind: 0))
    }

    /// Passes bytes through the filters behind that one.
    private func pass(_ bytes: [UInt8], behind index: Int) throws -> [UInt8] {
        var bytes = bytes
        var index = index + 1
        while index < filters.count, !bytes.isEmpty {
            var further: [UInt8] = []
            try bytes.withUnsafeBytes { try filters[index].filter($0, into: &further) }
            bytes = further
            index += 1
        }
        return bytes
    }

    /// Takes the output of the last filter.
    private func put(_ bytes: [UInt8]) throws {
        hasMore = filters.contains { $0.isPending }
        if bytes.isEmpty { return }
        if let left = promised {
            guard bytes.count <= left else { throw Fault.changedLength }
            promised = left - bytes.count
        }
        if output.isEmpty { output = bytes } else { output += bytes }
    }

    // MARK: Out

    /// Decides about the held content. To be called again after each piece that was passed on.
    func next(at now: LoopInstant) -> Next {
        if isWaiting { return .isWaiting }
        var count = heldCount
        if count > 0 {
            if let cut {
                count = min(count, cut - passed)
                if count <= 0 { return cutHere() }
            }
            if let pace {
                if granted == 0 {
                    let (most, wait) = pace.reserve(count, at: now)
                    granted = max(1, most)
                    if wait > .zero {
                        isWaiting = true
                        return .waits(wait)
                    }
                }
                count = min(count, granted)
                granted = 0
            }
            passed += count
            return .passOn(takeOutput(count))
        }
        if let cut, passed >= cut, !isFiltered, stated != passed { return cutHere() }
        if isPending { return .needsStep }
        guard isEnded, !isOverTold else { return .isEmpty }
        isOverTold = true
        return .isOver
    }

    /// Nothing goes on any more.
    private func cutHere() -> Next {
        isWaiting = true
        return .isCut
    }

    /// The wait is over.
    func wake() { isWaiting = false }

    private func takeOutput(_ count: Int) -> [UInt8] {
        if outputFrom == 0, count == output.count {
            defer { output = [] }
            return output
        }
        let end = outputFrom + count
        let piece = Array(output[outputFrom..<end])
        outputFrom = end
        if end == output.count {
            output = []
            outputFrom = 0
        }
        return piece
    }
}
