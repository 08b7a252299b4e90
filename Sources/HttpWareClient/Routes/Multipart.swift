/// A form of fields and files. Each of them is one part. RFC 7578.
///
/// ```swift
/// var form = Multipart()
/// form.add("title", "At the lake")
/// try form.add("photo", FileContent(path: path, contentType: "image/jpeg"))
/// ```
///
/// Files are read one at a time while they are sent, so the whole form is never in memory.
public struct Multipart: Sendable {
    private enum Part: Sendable {
        case bytes([UInt8])
        case file(FileContent)
        case content(RequestContent)
    }

    private var parts: [Part] = []
    /// The text between the parts: long and random, so that no part contains it.
    public let boundary: String

    public init() {
        var random = SystemRandomNumberGenerator()
        boundary = "httpware-" + String(random.next(), radix: 36) + String(random.next(), radix: 36)
    }

    /// Adds a field, with a media type only if one is given.
    public mutating func add(_ name: String, _ value: String, contentType: String? = nil) {
        parts.append(.bytes(Array((head(name, nil, contentType) + value + "\r\n").utf8)))
    }

    /// Adds a value, written by the encoder; JSON by default. Throws the encoder's error.
    public mutating func add(_ name: String, json value: some Encodable, by encoder: any ModelEncoder = JsonCoder())
        throws
    {
        let content = try encoder.encode(value)
        parts.append(.bytes(Array(head(name, nil, encoder.contentType).utf8) + content + [0x0d, 0x0a]))
    }

    /// Adds any content, such as a stream. A form with content that can be sent only once can itself be sent only once, and without a
    /// known length, its length is unknown.
    public mutating func add(_ name: String, content: RequestContent, filename: String? = nil) {
        parts.append(.bytes(Array(head(name, filename, content.contentType).utf8)))
        parts.append(.content(content))
        parts.append(.bytes([0x0d, 0x0a]))
    }

    /// Adds bytes as a file with that name.
    public mutating func add(
        _ name: String, _ bytes: some Sequence<UInt8>, filename: String,
        contentType: String = "application/octet-stream"
    ) {
        parts.append(.bytes(Array(head(name, filename, contentType).utf8) + Array(bytes) + [0x0d, 0x0a]))
    }

    /// Adds a file from disk, under its own name by default.
    public mutating func add(_ name: String, _ file: FileContent, filename: String? = nil) {
        parts.append(.bytes(Array(head(name, filename ?? file.name, file.contentType).utf8)))
        parts.append(.file(file))
        parts.append(.bytes([0x0d, 0x0a]))
    }

    private func head(_ name: String, _ filename: String?, _ contentType: String?) -> String {
        var text = "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Multipart.quoted(name))\""
        if let filename { text += "; filename=\"\(Multipart.quoted(filename))\"" }
        if let contentType {
            text += "\r\nContent-Type: \(contentType.filter { $0 != "\r" && $0 != "\n" && $0 != "\r\n" })"
        }
        return text + "\r\n\r\n"
    }

    /// Encodes line ends and quotation marks as browsers do, so that a name cannot end its line. WHATWG HTML
    /// §4.10.22.8.
    private static func quoted(_ name: String) -> String {
        var text = ""
        for byte in name.unicodeScalars {
            switch byte {
            case "\"": text += "%22"
            case "\r": text += "%0D"
            case "\n": text += "%0A"
            default: text.unicodeScalars.append(byte)
            }
        }
        return text
    }

    var content: RequestContent {
        let end = Array("--\(boundary)--\r\n".utf8)
        var length: Int? = end.count
        var mayRepeat = true
        var sources: [@Sendable () throws -> any UploadSource] = []
        for part in parts {
            switch part {
            case .bytes(let bytes):
                length = sum(length, bytes.count)
                sources.append { BytesSource(bytes) }
            case .file(let file):
                length = sum(length, file.length)
                sources.append { try file.open() }
            case .content(let content):
                length = sum(length, content.length)
                mayRepeat = mayRepeat && content.mayRepeat
                switch content.storage {
                case .none: break
                case .bytes(let bytes): sources.append { BytesSource(bytes) }
                case .streamed(_, _, let open): sources.append { try open() }
                }
            }
        }
        sources.append { BytesSource(end) }
        let all = sources
        return RequestContent(
            .streamed(length: length, mayRepeat: mayRepeat) { JoinedSource(all) },
            contentType: "multipart/form-data; boundary=\(boundary)")
    }

    /// The sum; `nil` if a length is unknown or the sum has no number.
    private func sum(_ length: Int?, _ other: Int?) -> Int? {
        guard let length, let other else { return nil }
        let (sum, isTooLarge) = length.addingReportingOverflow(other)
        return isTooLarge ? nil : sum
    }
}
