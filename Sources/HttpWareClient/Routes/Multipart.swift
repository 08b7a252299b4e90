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
    }

    private var parts: [Part] = []
    /// The text between the parts: long and random, so that no part contains it.
    public let boundary: String

    public init() {
        var random = SystemRandomNumberGenerator()
        boundary = "httpware-" + String(random.next(), radix: 36) + String(random.next(), radix: 36)
    }

    /// Adds a field.
    public mutating func add(_ name: String, _ value: String) {
        parts.append(.bytes(Array((head(name, nil, nil) + value + "\r\n").utf8)))
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
        var length = end.count
        var sources: [@Sendable () throws -> any UploadSource] = []
        for part in parts {
            switch part {
            case .bytes(let bytes):
                length += bytes.count
                sources.append { BytesSource(bytes) }
            case .file(let file):
                length += file.length
                sources.append { try file.open() }
            }
        }
        sources.append { BytesSource(end) }
        let all = sources
        return RequestContent(
            .streamed(length: length, mayRepeat: true) { JoinedSource(all) },
            contentType: "multipart/form-data; boundary=\(boundary)")
    }
}
