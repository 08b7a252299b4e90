/// Content with placeholders, parsed when the configuration is loaded: `<p>{request.path} is not here</p>`.
///
/// Content is often JSON, a style sheet or a script. So braces stand for themselves unless they contain the name of a placeholder;
/// `{{request.path}` is the text `{request.path}`. Inserted values are escaped for the content's type.
public struct ContentTemplate: Sendable, Hashable {
    /// How the values of placeholders are escaped.
    public enum Escaping: Sendable, Hashable {
        /// Not at all: plain text.
        case none
        /// By character references: HTML and XML, in text and in quoted attributes.
        case html
        /// As inside a JSON string. RFC 8259 §7.
        case json
    }

    /// The segments, as in any template.
    public let template: Template

    /// The bytes if there is no placeholder; `nil` otherwise.
    public var fixedText: [UInt8]? { template.fixedText }

    /// The first byte that is not white space; `nil` if a placeholder precedes it.
    public var firstByte: UInt8? {
        guard case .text(let bytes)? = template.segments.first else { return nil }
        return bytes.first { $0 > 0x20 }
    }

    /// The escaping for content of that media type; `nil` if no safe one is known.
    public static func escaping(for mediaType: String) -> Escaping? {
        let type = mediaType.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
        if type == "application/json" || type.hasSuffix("+json") { return .json }
        if type == "text/html" || type.hasSuffix("/xml") || type.hasSuffix("+xml") { return .html }
        return ["text/plain", "text/csv", "text/markdown"].contains(type) ? Escaping.none : nil
    }

    /// The reason why values must not be inserted at the placeholders; `nil` if they may.
    public func problem(_ escaping: Escaping) -> String? {
        switch escaping {
        case .none: nil
        case .html: isInScript ? "a placeholder must not be inside a script or a style; move it" : nil
        case .json: isOutsideStrings ? "a placeholder must be inside a JSON string; put it between quotes" : nil
        }
    }

    private var isOutsideStrings: Bool {
        var isInside = false
        var isEscaped = false
        for segment in template.segments {
            guard case .text(let bytes) = segment else {
                if !isInside || isEscaped { return true }
                continue
            }
            for byte in bytes {
                if isEscaped {
                    isEscaped = false
                } else if isInside, byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isInside.toggle()
                }
            }
        }
        return false
    }

    private var isInScript: Bool {
        var before = ""
        for segment in template.segments {
            if case .text(let bytes) = segment {
                before += String(decoding: bytes, as: UTF8.self).lowercased()
            } else if ["script", "style"].contains(where: { before.isInside($0) }) {
                return true
            }
        }
        return false
    }
}

extension String {
    /// Whether an element with that name is open at the end.
    fileprivate func isInside(_ element: String) -> Bool {
        let parts = split(separator: "</\(element)", omittingEmptySubsequences: false)
        return parts.last?.contains("<\(element)") ?? false
    }
}

extension ContentTemplate: OptionValue {
    public static let optionType = "text with placeholders"
    public var optionText: String { template.source }
    public var neededCaptures: [String] { template.neededCaptures }

    /// The maximum length of a placeholder's name.
    private static let longestName = 256

    public init(optionText: String) throws(OptionMistake) {
        let open = UInt8(ascii: "{")
        var segments: [Template.Segment] = []
        var text: [UInt8] = []
        var rest = Array(optionText.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == open else {
                text.append(byte)
                continue
            }
            let isLiteral = rest.first == open
            guard let name = ContentTemplate.name(in: isLiteral ? rest.dropFirst() : rest) else {
                text.append(open)
                continue
            }
            if isLiteral {
                // `{{name}`: everything except one brace.
                text += [open] + Array(name.utf8)
                rest = rest.dropFirst(1 + name.utf8.count)
                continue
            }
            let placeholder = try Placeholder(name: name)
            if !text.isEmpty { segments.append(.text(text)) }
            text = []
            segments.append(.placeholder(placeholder))
            rest = rest.dropFirst(name.utf8.count + 1)
        }
        if !text.isEmpty { segments.append(.text(text)) }
        template = Template(segments: segments, source: optionText)
    }

    /// The option that stands for exactly this text: what would be a placeholder gets a second brace.
    package static func literal(_ text: String) -> String {
        let open = UInt8(ascii: "{")
        var result: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == open, name(in: rest) != nil { result.append(open) }
            result.append(byte)
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// The text before the next closing brace, if it is meant as a placeholder: it begins like one, and contains no white space,
    /// quote or brace.
    private static func name(in rest: ArraySlice<UInt8>) -> String? {
        let name = rest.prefix(longestName).prefix { $0 > 0x20 && !"{}\"'()<>".utf8.contains($0) }
        guard rest.dropFirst(name.count).first == UInt8(ascii: "}") else { return nil }
        let text = String(decoding: name, as: UTF8.self)
        let isPlaceholder = Placeholder.roots.contains { text.hasPrefix($0) && text.utf8.count > $0.utf8.count }
        return isPlaceholder || (try? Placeholder(name: text)) != nil ? text : nil
    }
}
