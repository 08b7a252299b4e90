/// Searches a request's content for placeholders while it streams, and replaces them by tokens where that is configured. Throws
/// if a placeholder is left, before any of its bytes is forwarded.
///
/// Coded content is decoded in steps. Of content that is forwarded as it was received, the coded bytes wait until what they
/// decode to has been searched.
final class SearchedContent: ContentFilter {
    private let swaps: TokenSwaps
    private let decoder: ContentDecoder?
    /// The place in the content where placeholders are replaced; empty if they are not.
    private let place: PlaceholderSwap.Places
    private let words: String
    /// Whether the content is forwarded unchanged, or not at all.
    let keepsLength: Bool
    /// Whether the request is held until all of its content has been searched. Then the decoded content is limited.
    var isHeld = false
    private var decoded = 0

    /// Decoded content that may be the beginning of a placeholder.
    private var pending: [UInt8] = []
    /// The number of these bytes that were forwarded, because the content paused.
    private var released = 0
    /// Coded content that waits: earlier pieces whose end may be the beginning of a placeholder, then the current piece.
    private var heldCoded: [UInt8] = []
    /// The place in it where the current piece begins, and the number of bytes that this piece was decoded to so far.
    private var pieceStart = 0
    private var decodedOfPiece = 0
    private var values: ValueTracker

    /// The limit of held coded content: more than the largest single piece.
    private static let mostHeldCoded = 4 << 20
    /// The limit of the decoded content of a request that is held.
    static let mostDecoded = 64 << 20

    /// Searches the content of a request; `nil` if it has a coding that cannot be decoded.
    init?(_ request: borrowing HttpRequest, _ swaps: TokenSwaps) {
        guard let decoder = ContentDecoder(request.fields.values(of: .contentEncoding), readsChunks: true) else {
            return nil
        }
        self.decoder = decoder.isIdentity ? nil : decoder
        self.swaps = swaps
        let kind = ContentKind(request.fields[.contentType])
        // The chunks of `aws-chunked` state their sizes, and other fields describe them: their content is never changed.
        let isWanted =
            !kind.place.isEmpty && decoder.chunks == nil && swaps.swaps.contains { $0.places.contains(kind.place) }
        place = isWanted ? kind.place : []
        keepsLength = !isWanted
        values = ValueTracker(kind)
        words = kind.words
    }

    /// Searches a message without a type, such as one of a WebSocket.
    init(_ swaps: TokenSwaps, words: String) {
        self.swaps = swaps
        decoder = nil
        place = []
        keepsLength = true
        values = ValueTracker(.other)
        self.words = words
    }

    /// Whether the coding of the content is removed, so that the content can be changed.
    var decodes: Bool { decoder != nil && !keepsLength }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        guard let decoder else { return try search(input, into: &output) }
        if keepsLength {
            if !decoder.isPending {
                pieceStart = heldCoded.count
                decodedOfPiece = 0
            }
            heldCoded.append(contentsOf: input)
        }
        try decode(input, by: decoder, into: &output)
    }

    var isPending: Bool { decoder?.isPending ?? false }

    func more(into output: inout [UInt8]) throws {
        guard let decoder else { return }
        try decode(UnsafeRawBufferPointer(start: nil, count: 0), by: decoder, into: &output)
    }

    private func decode(
        _ input: UnsafeRawBufferPointer, by decoder: ContentDecoder, into output: inout [UInt8]
    ) throws {
        var unused: [UInt8] = []
        try decoder.decode(input) { part in
            decoded += part.count
            decodedOfPiece += part.count
            guard !isHeld || decoded <= SearchedContent.mostDecoded else {
                throw GatewayError(
                    .downstream, .contentTooLarge,
                    "the decoded content is larger than \(SearchedContent.mostDecoded) bytes")
            }
            guard keepsLength else { return try search(part, into: &output) }
            unused.removeAll(keepingCapacity: true)
            try search(part, into: &unused)
        }
        guard keepsLength, !decoder.isPending else { return }
        if pending.count <= decodedOfPiece, pieceStart > 0 {
            // A possible beginning of a placeholder lies in this piece, if there is any: earlier content may be forwarded.
            output += heldCoded[..<pieceStart]
            heldCoded.removeFirst(pieceStart)
            pieceStart = 0
        }
        if pending.isEmpty, !holdsTrailers {
            output += heldCoded
            heldCoded.removeAll(keepingCapacity: true)
        }
        guard heldCoded.count <= SearchedContent.mostHeldCoded else {
            throw ContentDecoder.Fault(description: "the coded content makes no progress")
        }
    }

    /// Whether the held content contains trailer fields, which are searched when they are complete.
    private var holdsTrailers: Bool { decoder?.chunks?.isWhole ?? false }

    /// A few held bytes may be forwarded when the content pauses, because a dialogue may depend on them.
    var holdsBack: Bool {
        released < pending.count && pending.count <= SearchedContent.shortPrefix && !holdsTrailers
    }

    private static let shortPrefix = 3

    func flush(into output: inout [UInt8]) throws {
        guard holdsBack else { return }
        if decoder != nil, keepsLength {
            output += heldCoded
            heldCoded = []
            pieceStart = 0
        } else {
            output += pending[released...]
        }
        released = pending.count
    }

    func finish(into output: inout [UInt8]) throws {
        try decoder?.finish()
        if let chunks = decoder?.chunks,
            let find = chunks.trailers.withUnsafeBytes({ PlaceholderSearch.first(in: $0) })
        {
            throw PlaceholderFault(find.placeholder, in: "a trailer field", swaps.swaps)
        }
        if decoder != nil, keepsLength { output += heldCoded } else { output += pending[released...] }
        heldCoded = []
        pending = []
        released = 0
    }

    /// Searches decoded content, and appends what may be forwarded.
    private func search(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        if pending.isEmpty { return try search(whole: input, gone: 0, into: &output) }
        pending.append(contentsOf: input)
        let (joined, gone) = (pending, released)
        pending = []
        released = 0
        try joined.withUnsafeBytes { try search(whole: $0, gone: gone, into: &output) }
    }

    /// Searches bytes; the first `gone` of them were already forwarded.
    private func search(whole bytes: UnsafeRawBufferPointer, gone: Int, into output: inout [UInt8]) throws {
        var from = 0
        // Forwarded bytes are not appended again.
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
}

/// The placeholders in complete content, wherever they are. At most the first MiB of the decoded content is searched.
struct ContentPlaceholders {
    private let content: [UInt8]
    private let codings: [String]
    private var found: Set<TokenPlaceholder> = []
    private var isAll = true

    private static let mostDecoded = 1 << 20

    /// Searches content with these values of `Content-Encoding`.
    init(in content: [UInt8], _ codings: [String]) {
        self.content = content
        self.codings = codings
        guard let decoder = ContentDecoder(codings, readsChunks: true) else { return }
        var decoded: [UInt8] = []
        // If the content cannot be decoded, the request is refused later.
        isAll = (try? decoder.decode(content, into: &decoded, upTo: ContentPlaceholders.mostDecoded)) ?? true
        decoded.withUnsafeBytes { bytes in
            var search = PlaceholderSearch(bytes)
            var from = 0
            while let find = search.next(from: from) {
                found.insert(find.placeholder)
                from = find.range.lowerBound + 1
            }
        }
    }

    /// Whether this is the result for that content: for the same memory, so that nothing is compared.
    func isOf(_ other: [UInt8], _ codings: [String]) -> Bool {
        guard content.count == other.count, self.codings == codings else { return false }
        return content.withUnsafeBytes { one in other.withUnsafeBytes { one.baseAddress == $0.baseAddress } }
    }

    /// Whether the content holds the placeholder, or is too long to tell.
    func mayHold(_ placeholder: TokenPlaceholder) -> Bool { !isAll || found.contains(placeholder) }
}

/// The kind of content, which determines its values.
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

/// Tracks whether the next byte of a form or of JSON is inside a value, not inside a name.
struct ValueTracker {
    private let kind: ContentKind
    /// In a form: whether the equals sign has been read.
    private var isBehindEquals = false
    /// The open containers in JSON: true for an object. Deeper ones are treated as arrays.
    private var containers: [Bool] = []
    private var tooDeep = 0
    private var isInString = false
    private var isEscaped = false
    /// Whether the next string is a name.
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

    /// Processes the next bytes.
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
