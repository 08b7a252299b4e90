/// Looks for placeholders in a request's content while it streams, and puts tokens in their place where that is wanted. Throws when a
/// placeholder is left: nothing of it has gone on then.
final class SearchedContent: ContentFilter {
    private let swaps: TokenSwaps
    private let decoder: ContentDecoder?
    /// Where in the content tokens may be put.
    private let place: PlaceholderSwap.Places
    private let words: String
    /// The content goes on as it came, or not at all.
    let keepsLength: Bool

    /// Decoded content that may be the beginning of a placeholder.
    private var pending: [UInt8] = []
    /// How many bytes of it have gone on, because no more came for a while.
    private var released = 0
    /// Coded content whose end may be the beginning of a placeholder.
    private var heldCoded: [UInt8] = []
    private var values: ValueTracker

    /// More than the largest piece that comes at once.
    private static let mostHeldCoded = 4 << 20

    /// Searches content of that type; `nil` if it has a coding that cannot be decoded.
    init?(_ request: borrowing HttpRequest, _ swaps: TokenSwaps) {
        guard let decoder = ContentDecoder(request.fields.values(of: .contentEncoding)) else { return nil }
        self.decoder = decoder.isIdentity ? nil : decoder
        self.swaps = swaps
        let kind = ContentKind(request.fields[.contentType])
        let isWanted = !kind.place.isEmpty && swaps.swaps.contains { $0.places.contains(kind.place) }
        place = isWanted ? kind.place : []
        keepsLength = !isWanted
        values = ValueTracker(kind)
        words = kind.words
    }

    /// Searches a message that has no type, such as one of a WebSocket.
    init(_ swaps: TokenSwaps, words: String) {
        self.swaps = swaps
        decoder = nil
        place = []
        keepsLength = true
        values = ValueTracker(.other)
        self.words = words
    }

    /// The coding of the content is taken off, so that it can be changed.
    var decodes: Bool { decoder != nil && !keepsLength }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        guard let decoder else { return try search(input, into: &output) }
        guard keepsLength else { return try decoder.decode(input) { try search($0, into: &output) } }
        var unused: [UInt8] = []
        var decoded = 0
        try decoder.decode(input) {
            decoded += $0.count
            unused.removeAll(keepingCapacity: true)
            try search($0, into: &unused)
        }
        if pending.count <= decoded {
            // What may be the beginning of a placeholder began in this piece, if there is any: what came before may go.
            output += heldCoded
            heldCoded.removeAll(keepingCapacity: true)
        }
        if pending.isEmpty { output.append(contentsOf: input) } else { heldCoded.append(contentsOf: input) }
        guard heldCoded.count <= SearchedContent.mostHeldCoded else {
            throw ContentDecoder.Fault(description: "the coded content makes no progress")
        }
    }

    /// A few bytes may go when no more comes for a while: a dialogue may wait for them.
    var holdsBack: Bool { released < pending.count && pending.count <= SearchedContent.shortPrefix }

    private static let shortPrefix = 3

    func flush(into output: inout [UInt8]) throws {
        guard holdsBack else { return }
        if decoder != nil, keepsLength {
            output += heldCoded
            heldCoded = []
        } else {
            output += pending[released...]
        }
        released = pending.count
    }

    func finish(into output: inout [UInt8]) throws {
        try decoder?.finish()
        if decoder != nil, keepsLength { output += heldCoded } else { output += pending[released...] }
        heldCoded = []
        pending = []
        released = 0
    }

    /// Appends what goes on of decoded content.
    private func search(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        if pending.isEmpty { return try search(whole: input, gone: 0, into: &output) }
        pending.append(contentsOf: input)
        let (joined, gone) = (pending, released)
        pending = []
        released = 0
        try joined.withUnsafeBytes { try search(whole: $0, gone: gone, into: &output) }
    }

    /// Of the bytes, so many have gone on already.
    private func search(whole bytes: UnsafeRawBufferPointer, gone: Int, into output: inout [UInt8]) throws {
        var from = 0
        // Those that have gone are not of a value only.
        var next = gone
        var search = PlaceholderSearch(bytes)
        while let find = search.next(from: from) {
            let (found, index) = (find.placeholder, find.range.lowerBound)
            values.pass(UnsafeRawBufferPointer(rebasing: bytes[from..<index]))
            guard let swap = swaps.swaps.first(where: { $0.placeholder == found }), !place.isEmpty,
                swap.places.contains(place), values.isInValue, !swaps.isOpenToOthers, index >= gone,
                find.escapes.isSubset(of: place == .json ? .json : .percent)
            else { throw PlaceholderFault(found, in: words, swaps.swaps) }
            output.append(contentsOf: bytes[max(next, from)..<index])
            output += place == .json ? swap.inJson : swap.inForm
            swaps.use(found)
            from = find.range.upperBound
            next = from
        }
        let held = PlaceholderSearch.unfinished(in: bytes, from: from)
        values.pass(UnsafeRawBufferPointer(rebasing: bytes[from..<held]))
        if held > next { output.append(contentsOf: bytes[next..<held]) }
        if held < bytes.count {
            pending = Array(bytes[held...])
            released = max(0, next - held)
        }
    }

    /// Whether content that is at hand holds a placeholder where it may be replaced, or may hold one that cannot be seen.
    static func holds(_ placeholder: TokenPlaceholder, _ bytes: [UInt8], of request: borrowing HttpRequest) -> Bool {
        guard let decoder = ContentDecoder(request.fields.values(of: .contentEncoding)) else { return false }
        var decoded: [UInt8] = []
        var isFound = false
        do {
            try bytes.withUnsafeBytes {
                try decoder.decode($0) {
                    if isFound { return }
                    decoded.append(contentsOf: $0)
                    isFound = RequestSearch.holds(decoded, placeholder)
                    decoded.removeFirst(max(0, decoded.count - PlaceholderSearch.longest))
                }
            }
        } catch {
            return isFound
        }
        return isFound
    }
}

/// What kind of values content holds.
enum ContentKind {
    case form, json, other

    init(_ contentType: String?) {
        let type = contentType?.prefix { $0 != ";" }.filter { $0 != " " && $0 != "\t" }.lowercased() ?? ""
        self =
            switch type {
            case "application/x-www-form-urlencoded": .form
            case "application/json", "text/json": .json
            case _ where type.hasSuffix("+json"): .json
            default: .other
            }
    }

    var place: PlaceholderSwap.Places {
        switch self {
        case .form: .form
        case .json: .json
        case .other: []
        }
    }

    var words: String {
        switch self {
        case .form: "the form"
        case .json: "the JSON content"
        case .other: "the content"
        }
    }
}

/// Knows whether the next byte of a form or of JSON is inside a value, and not inside a name.
struct ValueTracker {
    private let kind: ContentKind
    /// In a form: behind the equals sign.
    private var isBehindEquals = false
    /// The containers that are open in JSON: true for an object. Deeper ones are taken for arrays of no interest.
    private var containers: [Bool] = []
    private var tooDeep = 0
    private var isInString = false
    private var isEscaped = false
    /// The next string is a name.
    private var isNameNext = false

    private static let mostContainers = 512

    init(_ kind: ContentKind) { self.kind = kind }

    var isInValue: Bool {
        switch kind {
        case .form: isBehindEquals
        case .json: isInString && !isEscaped && !isNameNext && tooDeep == 0
        case .other: false
        }
    }

    /// Takes the bytes that come next.
    mutating func pass(_ bytes: UnsafeRawBufferPointer) {
        switch kind {
        case .other: break
        case .form:
            for byte in bytes {
                if byte == 0x3d { isBehindEquals = true } else if byte == 0x26 { isBehindEquals = false }
            }
        case .json: for byte in bytes { passJson(byte) }
        }
    }

    private mutating func passJson(_ byte: UInt8) {
        if isInString {
            if isEscaped {
                isEscaped = false
            } else if byte == 0x5c {
                isEscaped = true
            } else if byte == 0x22 {
                isInString = false
            }
            return
        }
        switch byte {
        case 0x22: isInString = true
        case 0x3a: isNameNext = false
        case 0x2c: isNameNext = containers.last ?? false
        case 0x7b, 0x5b:
            guard containers.count < ValueTracker.mostContainers else {
                tooDeep &+= 1
                return
            }
            containers.append(byte == 0x7b)
            isNameNext = byte == 0x7b
        case 0x7d, 0x5d:
            if tooDeep > 0 { tooDeep &-= 1 } else { _ = containers.popLast() }
            isNameNext = false
        default: break
        }
    }
}
