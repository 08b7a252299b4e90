package import HttpWare

#if Gateway
    internal import CYaml
#else
    #error(
        "configuration files need the trait Gateway of the package httpware: it is on by default, and traits: [] turns it off"
    )
#endif

/// Reads one YAML 1.2 document into a tree of texts, lists and maps with their places.
///
/// It uses the events of libyaml, and builds the tree itself without recursion. The composers that come with such libraries recurse to any
/// depth, stop at the first duplicate key, and hash keys that aliases can make exponentially large.
package struct YamlReader {
    /// The limits of one file, so that no file can exhaust memory or stack.
    enum Limit {
        static let bytes = 4 << 20
        static let depth = 64
        /// The maximum number of nodes, including everything that aliases repeat.
        static let nodes = 100_000
    }

    private struct Built {
        var node: ConfigNode
        var count = 1
        var depth = 0
    }

    private struct Frame {
        var location: SourceLocation
        var anchor: String?
        var isMap: Bool
        var members: [ConfigNode] = []
        var entries: [ConfigNode.Entry] = []
        var places: [String: SourceLocation] = [:]
        var key: (text: String, location: SourceLocation)?
        /// The entries of `<<`, which count if the map has no such key.
        var merged: [ConfigNode.Entry] = []
        var count = 1
        var depth = 0
    }

    private struct Stop: Error {}

    private static let tooDeep = "nested deeper than \(Limit.depth) levels"

    private let file: String
    private let mergesKeys: Bool
    private(set) var diagnostics = Diagnostics()
    private var frames: [Frame] = []
    private var anchors: [String: Built] = [:]
    private var root: ConfigNode?

    /// Reads the document. The node is `nil` if the document is not YAML, is empty, or exceeds a limit; the diagnostics then
    /// say so.
    ///
    /// With `mergesKeys`, the key `<<` adds the entries of other maps, as in files of YAML 1.1; without, it is an error.
    package static func read(
        _ bytes: [UInt8], file: String, mergesKeys: Bool = false
    ) -> (node: ConfigNode?, diagnostics: Diagnostics) {
        var reader = YamlReader(file: file, mergesKeys: mergesKeys)
        // A byte order mark, which some editors write. YAML 1.2 §5.2.
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let isWhole = (try? reader.read(bytes.starts(with: mark) ? Array(bytes.dropFirst(mark.count)) : bytes)) != nil
        return (isWhole ? reader.root : nil, reader.diagnostics)
    }

    private init(file: String, mergesKeys: Bool) {
        self.file = file
        self.mergesKeys = mergesKeys
    }

    private mutating func read(_ bytes: [UInt8]) throws(Stop) {
        if let place = invalidUtf8(bytes) { throw stop(place, "this is not UTF-8; save the file in that encoding") }
        var parser = yaml_parser_t()
        guard yaml_parser_initialize(&parser) == 1 else { throw stop(at(0, 0), "out of memory") }
        defer { yaml_parser_delete(&parser) }
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING)
        try bytes.withUnsafeBufferPointer { bytes throws(Stop) in
            yaml_parser_set_input_string(&parser, bytes.baseAddress, bytes.count)
            var documents = 0
            while true {
                var event = yaml_event_t()
                guard yaml_parser_parse(&parser, &event) == 1 else { throw syntaxError(parser, bytes) }
                defer { yaml_event_delete(&event) }
                if event.type == YAML_STREAM_END_EVENT { break }
                if event.type == YAML_DOCUMENT_START_EVENT {
                    documents += 1
                    if documents > 1 {
                        throw stop(at(event.start_mark), "a second document begins; write one per file")
                    }
                }
                try takeEvent(event)
            }
        }
        guard root != nil else { throw stop(at(0, 0), "the file is empty; begin with version: 1") }
    }

    // MARK: Events

    private mutating func takeEvent(_ event: yaml_event_t) throws(Stop) {
        let place = at(event.start_mark)
        switch event.type {
        case YAML_SCALAR_EVENT:
            let scalar = event.data.scalar
            let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
            checkTag(scalar.tag, place)
            let isPlain = scalar.style == YAML_PLAIN_SCALAR_STYLE
            try add(Built(node: ConfigNode(.scalar(text, isQuoted: !isPlain), at: place)), anchor: name(scalar.anchor))
        case YAML_ALIAS_EVENT:
            let alias = name(event.data.alias.anchor) ?? ""
            guard let built = anchors[alias] else {
                throw stop(place, "*\(alias) has no anchor before it; quote a value that begins with *")
            }
            if frames.last?.isMap == true, frames.last?.key == nil { throw stop(place, "an alias cannot be a key") }
            try add(built, anchor: nil)
        case YAML_SEQUENCE_START_EVENT:
            checkTag(event.data.sequence_start.tag, place)
            try open(Frame(location: place, anchor: name(event.data.sequence_start.anchor), isMap: false))
        case YAML_MAPPING_START_EVENT:
            checkTag(event.data.mapping_start.tag, place)
            try open(Frame(location: place, anchor: name(event.data.mapping_start.anchor), isMap: true))
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT:
            guard var frame = frames.popLast() else { return }
            for entry in frame.merged where frame.places[entry.key] == nil {
                frame.places[entry.key] = entry.location
                frame.entries.append(entry)
            }
            let content: ConfigNode.Content = frame.isMap ? .map(frame.entries) : .list(frame.members)
            let node = ConfigNode(content, at: frame.location)
            try add(Built(node: node, count: frame.count, depth: frame.depth), anchor: frame.anchor)
        default: break
        }
    }

    private mutating func open(_ frame: Frame) throws(Stop) {
        if frames.last?.isMap == true, frames.last?.key == nil {
            throw stop(
                frame.location,
                "\(frame.isMap ? "a map" : "a list") cannot be a key; quote a text that begins with { or [")
        }
        if frames.count >= Limit.depth { throw stop(frame.location, YamlReader.tooDeep) }
        frames.append(frame)
    }

    /// Adds a finished value to the list or map around it, or makes it the root.
    private mutating func add(_ built: Built, anchor: String?) throws(Stop) {
        if let anchor { anchors[anchor] = built }
        guard var frame = frames.popLast() else {
            root = built.node
            return
        }
        if frame.isMap, frame.key == nil {
            frame.key = (built.node.text ?? "", built.node.location)
            frames.append(frame)
            return
        }
        frame.count += built.count
        frame.depth = max(frame.depth, built.depth + 1)
        if frame.count > Limit.nodes { throw stop(built.node.location, "more than \(Limit.nodes) values") }
        if frames.count + frame.depth > Limit.depth {
            throw stop(built.node.location, YamlReader.tooDeep)
        }
        if let key = frame.key {
            frame.key = nil
            addEntry(ConfigNode.Entry(key: key.text, location: key.location, value: built.node), in: &frame)
        } else {
            frame.members.append(built.node)
        }
        frames.append(frame)
    }

    private mutating func addEntry(_ entry: ConfigNode.Entry, in frame: inout Frame) {
        let path = (frames.compactMap(\.key?.text) + [entry.key.shortened]).joined(separator: ".")
        if entry.key == "<<", mergesKeys {
            frame.merged += entry.value.members.compactMap(\.entries).flatMap { $0 }
        } else if entry.key == "<<" {
            diagnostics.error(at: entry.location, path, "merge keys are not part of YAML 1.2; write the keys out")
        } else if let first = frame.places[entry.key] {
            diagnostics.error(at: entry.location, path, "written twice; the first is at \(first)")
        } else {
            frame.places[entry.key] = entry.location
            frame.entries.append(entry)
        }
    }

    // MARK: Mistakes

    private mutating func checkTag(_ tag: UnsafeMutablePointer<yaml_char_t>?, _ place: SourceLocation) {
        guard let tag = name(tag),
            !["!", "tag:yaml.org,2002:str", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"].contains(tag)
        else { return }
        diagnostics.error(at: place, "", "the tag \(tag.quotedForErrors) is not supported; remove it")
    }

    private mutating func stop(_ place: SourceLocation, _ message: String) -> Stop {
        diagnostics.error(at: place, "", message)
        return Stop()
    }

    private mutating func syntaxError(_ parser: yaml_parser_t, _ bytes: UnsafeBufferPointer<UInt8>) -> Stop {
        let problem = parser.problem.map { String(cString: $0) } ?? "this is not YAML"
        if parser.error == YAML_READER_ERROR {
            return stop(
                place(of: parser.problem_offset, in: bytes), "\(problem); only printable characters, tabs and line ends"
            )
        }
        let mark = parser.problem_mark
        if problem.hasPrefix("Maximum nesting level") { return stop(at(mark), YamlReader.tooDeep) }
        // The mark counts characters. The text at that position says more than the parser does.
        let lines = bytes.split(
            separator: UInt8(ascii: "\n"), maxSplits: mark.line + 1, omittingEmptySubsequences: false)
        func character(at mark: yaml_mark_t) -> UnicodeScalar? {
            guard mark.line < lines.count else { return nil }
            return String(decoding: lines[mark.line], as: UTF8.self).unicodeScalars.dropFirst(mark.column).first
        }
        if problem == "found character that cannot start any token", let sign = character(at: mark) {
            if sign == "\t" { return stop(at(mark), "a tab cannot indent; use spaces") }
            if "@`%".unicodeScalars.contains(sign) {
                return stop(at(mark), "a value cannot begin with \(sign); quote it")
            }
        }
        if problem == "did not find expected alphabetic or numeric character", parser.context != nil,
            let sign = character(at: parser.context_mark), "*&".unicodeScalars.contains(sign)
        {
            return stop(at(parser.context_mark), "a value cannot begin with \(sign); quote it")
        }
        if problem == "mapping values are not allowed in this context" {
            return stop(
                at(mark),
                "a colon stands where none can; quote a value that has one, and put a space after each key's colon")
        }
        var message = problem
        if let context = parser.context {
            message += ", " + String(cString: context)
            if parser.context_mark.line != mark.line {
                message += " that begins in line \(parser.context_mark.line + 1)"
            }
        }
        return stop(at(mark), message)
    }

    // MARK: Places

    private func at(_ mark: yaml_mark_t) -> SourceLocation { at(mark.line, mark.column) }

    private func at(_ line: Int, _ column: Int) -> SourceLocation {
        SourceLocation(file: file, line: line + 1, column: column + 1)
    }

    private func name(_ text: UnsafeMutablePointer<yaml_char_t>?) -> String? {
        text.map { String(cString: $0) }
    }

    private func place(of offset: Int, in bytes: UnsafeBufferPointer<UInt8>) -> SourceLocation {
        let before = bytes.prefix(offset)
        let line = before.count { $0 == UInt8(ascii: "\n") }
        let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return at(line, before[start...].count { $0 & 0xC0 != 0x80 })
    }

    private func invalidUtf8(_ bytes: [UInt8]) -> SourceLocation? {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
            return nil
        } catch {
            return bytes.withUnsafeBufferPointer { place(of: error.byteOffsets.lowerBound, in: $0) }
        }
    }
}

extension String {
    /// The text, short enough for an error.
    var shortened: String { unicodeScalars.count > 80 ? String(prefix(80)) + "…" : self }
}
