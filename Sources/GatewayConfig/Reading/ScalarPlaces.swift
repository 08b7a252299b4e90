#if Gateway
    internal import CYaml
#endif

/// The places of the texts in a YAML file, for showing the file without some of them: a text can have several lines.
///
/// A file that is not YAML to its end has the places up to the error. Bounded by the length of the file, and not recursive.
package struct ScalarPlaces {
    /// One text: a key, or a value.
    package struct Place: Sendable {
        /// The line and the column of its beginning, from 1, as in `SourceLocation`. Columns count Unicode scalars.
        package let line: Int, column: Int
        /// Its Unicode scalars in the file, with quotes, anchor and tag, and with all lines of a block.
        package let range: Range<Int>
        /// Whether it has more than one line.
        package let isOnSeveralLines: Bool
        /// Whether each of its lines is a line of the value: `|`.
        package let isLiteral: Bool
        package let isKey: Bool
    }

    /// The places in the order of the file.
    package private(set) var all: [Place] = []
    /// Whether the whole file is YAML.
    package private(set) var isWhole = false
    /// The open lists and maps. In a map, whether a key is next.
    private var open: [Bool?] = []

    /// The places in a file of UTF-8 without a byte order mark.
    package init(in bytes: [UInt8]) {
        var parser = yaml_parser_t()
        guard yaml_parser_initialize(&parser) == 1 else { return }
        defer { yaml_parser_delete(&parser) }
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING)
        bytes.withUnsafeBufferPointer { bytes in
            yaml_parser_set_input_string(&parser, bytes.baseAddress, bytes.count)
            while true {
                var event = yaml_event_t()
                guard yaml_parser_parse(&parser, &event) == 1 else { return }
                defer { yaml_event_delete(&event) }
                if event.type == YAML_STREAM_END_EVENT {
                    isWhole = true
                    return
                }
                take(event)
            }
        }
    }

    private mutating func take(_ event: yaml_event_t) {
        switch event.type {
        case YAML_SCALAR_EVENT:
            let isKey = beginsNode()
            let (start, end) = (event.start_mark, event.end_mark)
            let style = event.data.scalar.style
            // A block ends where the next line begins.
            let isBlock = style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE
            all.append(
                Place(
                    line: start.line + 1, column: start.column + 1, range: start.index..<max(start.index, end.index),
                    isOnSeveralLines: isBlock || end.line > start.line, isLiteral: style == YAML_LITERAL_SCALAR_STYLE,
                    isKey: isKey))
        case YAML_ALIAS_EVENT: _ = beginsNode()
        case YAML_SEQUENCE_START_EVENT:
            _ = beginsNode()
            open.append(nil)
        case YAML_MAPPING_START_EVENT:
            _ = beginsNode()
            open.append(true)
        case YAML_SEQUENCE_END_EVENT, YAML_MAPPING_END_EVENT: _ = open.popLast()
        default: break
        }
    }

    /// Notes a node in the list or map around it. Returns whether it is a key.
    private mutating func beginsNode() -> Bool {
        guard case .some(.some(let isKey)) = open.last else { return false }
        open[open.count - 1] = !isKey
        return isKey
    }
}
