import HttpWare

/// The place beneath a folder that a request's path names.
struct FilePlace: Sendable, Equatable {
    /// The decoded names joined by slashes, without a slash at either end; empty for the folder itself.
    let path: [UInt8]
    /// Whether the request's path ends with a slash.
    let isFolder: Bool

    /// The folder itself, if the request names it without a slash at the end.
    static let unslashedRoot = FilePlace(path: [], isFolder: false)

    private init(path: [UInt8], isFolder: Bool) {
        self.path = path
        self.isFolder = isFolder
    }

    /// The longest path that Linux accepts.
    private static let mostBytes = 4095

    /// The place named by a path in normal form; `nil` for a path that cannot name a file. Such a path has two slashes in a row,
    /// an encoded slash or NUL, or a dot segment. Names that begin with a dot are refused too unless `showsHidden` is set,
    /// except `.well-known` (RFC 8615).
    init?(_ path: some StringProtocol, showsHidden: Bool) {
        var names: [UInt8] = []
        var isFolder = path.isEmpty
        guard path.utf8.first ?? 0x2f == 0x2f else { return nil }
        let segments = path.utf8.dropFirst().split(separator: 0x2f, omittingEmptySubsequences: false)
        for (index, segment) in segments.enumerated() {
            if segment.isEmpty {
                guard index == segments.count - 1 else { return nil }
                isFolder = true
                continue
            }
            guard let name = FilePlace.decode(segment), name != [0x2e], name != [0x2e, 0x2e] else { return nil }
            if name[0] == 0x2e, !showsHidden, !name.elementsEqual(".well-known".utf8) { return nil }
            if !names.isEmpty { names.append(0x2f) }
            names += name
            guard names.count <= FilePlace.mostBytes else { return nil }
        }
        self.path = names
        self.isFolder = isFolder
    }

    /// Decodes a segment to a file name; `nil` if it is malformed, or contains a NUL or a slash.
    private static func decode(_ segment: some Collection<UInt8>) -> [UInt8]? {
        var name: [UInt8] = []
        name.reserveCapacity(segment.count)
        var index = segment.startIndex
        while index != segment.endIndex {
            var byte = segment[index]
            segment.formIndex(after: &index)
            if byte == 0x25 {
                guard let high = digit(segment, &index), let low = digit(segment, &index) else { return nil }
                byte = high << 4 | low
            }
            guard byte != 0, byte != 0x2f else { return nil }
            name.append(byte)
        }
        return name
    }

    private static func digit<Text: Collection<UInt8>>(_ text: Text, _ index: inout Text.Index) -> UInt8? {
        guard index != text.endIndex else { return nil }
        defer { text.formIndex(after: &index) }
        return Hex.value(text[index])
    }

    /// The path of a file in this folder.
    func file(_ name: String) -> [UInt8] { path.isEmpty ? Array(name.utf8) : path + [0x2f] + name.utf8 }
}
