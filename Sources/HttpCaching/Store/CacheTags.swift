import HttpWare

/// The tags that a response names: separated by commas or white space.
package enum CacheTags {
    /// The maximum number of tags and the maximum length of a tag; others are ignored.
    package static let most = 128
    package static let longest = 256

    package static func read(_ lines: [String]) -> [String] {
        var tags: [String] = []
        for line in lines {
            for tag in line.split(whereSeparator: { $0 == "," || $0 == " " || $0 == "\t" }) {
                guard tags.count < most else { return tags }
                if tag.utf8.count <= longest { tags.append(String(tag)) }
            }
        }
        return tags
    }
}
