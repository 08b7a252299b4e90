/// Text with placeholders, parsed when the configuration is loaded: `{request.path}?v={request.header.X-Version}`.
///
/// `{{` is a literal `{`; a `}` outside a placeholder stands for itself. No other placeholders exist.
public struct Template: Sendable, Hashable {
    /// A piece of a template.
    public enum Segment: Sendable, Hashable {
        case text([UInt8])
        case placeholder(Placeholder)
    }

    /// The segments; adjacent texts are joined, and no text is empty.
    public let segments: [Segment]
    /// The template as written.
    public let source: String

    init(segments: [Segment], source: String) {
        self.segments = segments
        self.source = source
    }

    /// The option that stands for exactly this text: each `{` is doubled.
    package static func literal(_ text: String) -> String {
        String(decoding: text.utf8.flatMap { $0 == UInt8(ascii: "{") ? [$0, $0] : [$0] }, as: UTF8.self)
    }

    /// The bytes if there is no placeholder; `nil` otherwise.
    public var fixedText: [UInt8]? {
        switch segments.first {
        case nil: return []
        case .text(let bytes) where segments.count == 1: return bytes
        default: return nil
        }
    }
}

extension Template: OptionValue {
    public static let optionType = "template"
    public var optionText: String { source }

    public var neededCaptures: [String] {
        segments.compactMap { if case .placeholder(.path(let name)) = $0 { name } else { nil } }
    }

    public init(optionText: String) throws(OptionMistake) {
        let open = UInt8(ascii: "{")
        var segments: [Segment] = []
        var text: [UInt8] = []
        var rest = Array(optionText.utf8)[...]
        while let byte = rest.popFirst() {
            if byte != open {
                text.append(byte)
            } else if rest.first == open {
                rest.removeFirst()
                text.append(open)
            } else {
                guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else {
                    throw OptionMistake(
                        "close it with }, or write {{ for a literal {", problem: "a placeholder is not closed")
                }
                let placeholder = try Placeholder(name: String(decoding: rest[..<end], as: UTF8.self))
                if !text.isEmpty { segments.append(.text(text)) }
                text = []
                segments.append(.placeholder(placeholder))
                rest = rest[(end + 1)...]
            }
        }
        if !text.isEmpty { segments.append(.text(text)) }
        self.segments = segments
        source = optionText
    }
}

extension Template: ExpressibleByStringLiteral {
    /// A template written in code; an invalid literal is a programming error and traps.
    public init(stringLiteral value: String) {
        guard let template = try? Template(optionText: value) else { preconditionFailure("not a template") }
        self = template
    }
}
