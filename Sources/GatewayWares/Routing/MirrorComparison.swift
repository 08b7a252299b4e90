import HttpWare

/// Compares the response of an exchange with the response to its copy, once both are complete.
///
/// Unchecked: it is used on the loop of the exchange only. Other threads compare copies of its values.
final class MirrorComparison: @unchecked Sendable {
    private struct Side: Sendable {
        var status: HttpStatus
        var fields: HttpFields
        var content: [UInt8] = []
    }

    private let rules: Mirror.Comparing
    private let limit: Int
    private let counts: MirrorCounts
    private var own: Side?
    private var copy: Side?
    private var isOwnWhole = false
    private var isCopyWhole = false
    private var isOver = false
    /// Adds to the record of the exchange.
    var tell: ((String) -> Void)?

    /// The maximum number of differences in a note.
    private static let mostNamed = 8

    init(_ rules: Mirror.Comparing, upTo limit: Int, _ counts: MirrorCounts) {
        self.rules = rules
        self.limit = limit
        self.counts = counts
    }

    /// Ends the comparison without a result.
    func giveUp() {
        isOver = true
        (own, copy, tell) = (nil, nil, nil)
    }

    // MARK: The response of the exchange

    func begin(_ response: HttpResponse) {
        guard !isOver else { return }
        own = Side(status: response.status, fields: response.fields)
    }

    func content(_ bytes: UnsafeRawBufferPointer) {
        guard let count = own?.content.count else { return }
        guard bytes.count <= limit - count else { return giveUp() }
        own?.content.append(contentsOf: bytes)
    }

    func ended(isWhole: Bool) {
        guard isWhole else { return giveUp() }
        isOwnWhole = true
        compare()
    }

    // MARK: The response to the copy

    func copyBegan(_ response: HttpResponse) {
        guard !isOver else { return }
        copy = Side(status: response.status, fields: response.fields)
    }

    func copyContent(_ bytes: UnsafeRawBufferPointer) { copy?.content.append(contentsOf: bytes) }

    func copyEnded() {
        isCopyWhole = true
        compare()
    }

    // MARK: Comparing

    private func compare() {
        guard isOwnWhole, isCopyWhole, !isOver, let own, let copy else { return }
        let tell = tell
        giveUp()
        self.tell = tell
        let isShort = [own, copy].allSatisfy { side in
            let isCoded = side.fields.contains(.contentEncoding)
            return side.content.count <= (isCoded ? ContentEditing.mostCodedOnLoop : ContentEditing.mostOnLoop)
        }
        guard !isShort, let loop = EventLoop.current else { return end(differences(own, copy)) }
        // Long contents are compared on other threads, unless these have too much work.
        let isTaken = ContentEditing.threads.submit({ self.differences(own, copy) }) { differences in
            loop.execute { self.end(differences) }
        }
        if !isTaken { giveUp() }
    }

    private func end(_ differences: [String]) {
        let tell = tell
        giveUp()
        guard !differences.isEmpty else { return }
        counts.addDifference()
        tell?("the copy differs in " + differences.prefix(MirrorComparison.mostNamed).joined(separator: ", "))
    }

    /// Safe on any thread, because the rules never change.
    private func differences(_ own: Side, _ copy: Side) -> [String] {
        var found: [String] = []
        if own.status != copy.status { found.append("status (\(own.status.code), \(copy.status.code))") }
        var names: Set<String> = []
        for (name, _) in Array(own.fields) + Array(copy.fields) { names.insert(name.lowercased()) }
        for text in names.sorted() {
            guard let name = FieldName(text), !MirrorComparison.free.contains(name), !rules.fields.contains(name),
                own.fields.rawValues(of: name) != copy.fields.rawValues(of: name)
            else { continue }
            found.append("field \(text)")
        }
        if own.content != copy.content { found += contentDifferences(own, copy) }
        return found
    }

    /// Fields that are expected to differ between two responses.
    private static let free: Set<FieldName> = [.date, .age, .via, .contentLength, "Server-Timing"]

    private func contentDifferences(_ own: Side, _ copy: Side) -> [String] {
        guard let one = plain(own), let other = plain(copy), one != other else {
            return plain(own) != nil && plain(copy) != nil ? [] : ["content"]
        }
        var edits = JsonEdits()
        edits.remove = rules.pointers
        do {
            let one = try edits.apply(to: one, upTo: limit) ?? one
            let other = try edits.apply(to: other, upTo: limit) ?? other
            return try JsonDifference.places(one, other, most: MirrorComparison.mostNamed)
        } catch {
            return ["content"]
        }
    }

    /// The content without its codings; `nil` if it cannot be decoded, or is too large when decoded.
    private func plain(_ side: Side) -> [UInt8]? {
        guard let decoder = ContentDecoder(side.fields.values(of: .contentEncoding)) else { return nil }
        if decoder.isIdentity { return side.content }
        var plain: [UInt8] = []
        do {
            guard try decoder.decode(side.content, into: &plain, upTo: limit) else { return nil }
            try decoder.finish()
            return plain
        } catch {
            return nil
        }
    }
}

/// Where two JSON texts differ.
enum JsonDifference {
    /// The pointers to values that differ or are missing on one side. Throws if a text is not JSON.
    static func places(_ one: [UInt8], _ other: [UInt8], most: Int) throws(JsonFault) -> [String] {
        let (first, second) = (try JsonScanner.check(one), try JsonScanner.check(other))
        var source = JsonSource(one)
        let start = source.add(other).range.lowerBound
        var found: [String] = []
        try compare(
            JsonNode(first), JsonNode(start + second.lowerBound..<start + second.upperBound), "", &source, most, &found)
        return found
    }

    private static func compare(
        _ one: JsonNode, _ other: JsonNode, _ place: String, _ source: inout JsonSource, _ most: Int,
        _ found: inout [String]
    ) throws(JsonFault) {
        guard found.count < most else { return }
        var (one, other) = (one, other)
        try one.open(&source)
        try other.open(&source)
        switch (one.parts, other.parts) {
        case (.object(let ones), .object(let others)):
            var values: [[UInt8]: JsonNode] = [:]
            for member in others { values[member.text] = member.value }
            for member in ones {
                let inner = place + "/" + escaped(member.text)
                if let value = values.removeValue(forKey: member.text) {
                    try compare(member.value, value, inner, &source, most, &found)
                } else if found.count < most {
                    found.append(inner)
                }
            }
            for member in others where values[member.text] != nil && found.count < most {
                found.append(place + "/" + escaped(member.text))
            }
        case (.list(let ones), .list(let others)):
            for (index, (one, other)) in zip(ones, others).enumerated() {
                try compare(one, other, "\(place)/\(index)", &source, most, &found)
            }
            if ones.count != others.count, found.count < most {
                found.append("\(place)/\(min(ones.count, others.count))")
            }
        default:
            if try !JsonPatch.areEqual(one, other, &source) { found.append(place.isEmpty ? "content" : place) }
        }
    }

    private static func escaped(_ name: [UInt8]) -> String {
        String(decoding: name, as: UTF8.self).replacing("~", with: "~0").replacing("/", with: "~1")
    }
}
