/// `; did you mean "max"?`, or an empty text if no name is similar.
public func didYouMean(_ name: String, among names: some Sequence<String>) -> String {
    guard let near = nearest(to: name, among: names) else { return "" }
    return "; did you mean \"\(near)\"?"
}

/// `; did you mean "requestHeaders" or "responseHeaders"?`
public func didYouMean(_ names: [String]) -> String {
    names.isEmpty ? "" : "; did you mean \(names.map { "\"\($0)\"" }.joinedByOr)?"
}

/// The name with the fewest edits, if these are few for its length; `nil` otherwise. Case is ignored.
package func nearest(to name: String, among names: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().utf8.prefix(64))
    let limit = max(1, min(3, wanted.count / 3))
    var best: (name: String, distance: Int)?
    for candidate in names {
        let distance = editDistance(wanted, Array(candidate.lowercased().utf8.prefix(64)))
        if distance <= limit && distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.name
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn one into the other.
private func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforePrevious: [Int] = []
    var previous = Array(0...right.count)
    for i in left.indices {
        var current = [i + 1]
        for j in right.indices {
            var cost = min(previous[j + 1] + 1, current[j] + 1, previous[j] + (left[i] == right[j] ? 0 : 1))
            if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                cost = min(cost, beforePrevious[j - 1] + 1)
            }
            current.append(cost)
        }
        beforePrevious = previous
        previous = current
    }
    return previous[right.count]
}

extension [String] {
    /// The texts as a list: `text, json or template`.
    var joinedByOr: String {
        guard let last, count > 1 else { return first ?? "" }
        return dropLast().joined(separator: ", ") + " or " + last
    }
}
