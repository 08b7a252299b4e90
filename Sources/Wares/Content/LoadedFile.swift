import Glibc
package import HttpWare

/// A file's bytes as content, read when the configuration is loaded.
package enum LoadedFile {
    /// The maximum size of a file that is held in memory.
    static let limit = ByteCount.mebibytes(16)

    /// The file's bytes. If the file cannot be read or is too large, records a mistake and returns `nil`.
    package static func read(_ path: String, _ key: String, _ options: inout OptionsReader) -> [UInt8]? {
        guard !options.isDescribing else { return nil }
        let content = load(path, key, limit, &options)
        options.noteFile(path, content: content ?? [])
        return content
    }

    /// Reads a file that may be larger, up to `most` bytes. Only its digest is noted for reloads.
    package static func read(_ path: String, _ key: String, upTo most: Int, _ options: inout OptionsReader) -> [UInt8]?
    {
        guard !options.isDescribing else { return nil }
        let content = load(path, key, .bytes(most), &options)
        let digest = (content ?? []).withUnsafeBytes { Digest256(of: $0) }
        options.noteFile(path, content: content == nil ? [] : digest.withBytes { Array($0) })
        return content
    }

    private static func load(
        _ path: String, _ key: String, _ limit: ByteCount, _ options: inout OptionsReader
    ) -> [UInt8]? {
        if let refusal = FileGate.refusal {
            options.fail(at: key, "\(path.quotedForErrors) cannot be read: \(refusal)")
            return nil
        }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            options.fail(at: key, "\(path.quotedForErrors) cannot be read: \(SystemError.text(of: errno))")
            return nil
        }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return content }
            if count < 0 {
                if errno == EINTR { continue }
                options.fail(at: key, "\(path.quotedForErrors) cannot be read: \(SystemError.text(of: errno))")
                return nil
            }
            content += buffer[..<count]
            if content.count > limit.bytes {
                options.fail(at: key, "\(path.quotedForErrors) is larger than \(limit)")
                return nil
            }
        }
    }

    /// The media type for the extension of a file's name; `nil` if the extension is unknown.
    package static func mediaType(ofName path: String) -> StaticString? {
        let name = path.split(separator: "/").last ?? ""
        guard let dot = name.lastIndex(of: ".") else { return nil }
        return switch name[name.index(after: dot)...].lowercased() {
        case "html", "htm": "text/html; charset=utf-8"
        case "txt", "md", "log": "text/plain; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "csv": "text/csv; charset=utf-8"
        case "json", "map": "application/json"
        case "js", "mjs": "text/javascript; charset=utf-8"
        case "webmanifest": "application/manifest+json"
        case "xml": "application/xml"
        case "xhtml": "application/xhtml+xml"
        case "atom": "application/atom+xml"
        case "rss": "application/rss+xml"
        case "yaml", "yml": "application/yaml"
        case "ics": "text/calendar; charset=utf-8"
        case "vtt": "text/vtt; charset=utf-8"
        case "svg": "image/svg+xml"
        case "png": "image/png"
        case "jpg", "jpeg": "image/jpeg"
        case "gif": "image/gif"
        case "webp": "image/webp"
        case "avif": "image/avif"
        case "bmp": "image/bmp"
        case "tif", "tiff": "image/tiff"
        case "ico": "image/x-icon"
        case "woff": "font/woff"
        case "woff2": "font/woff2"
        case "ttf": "font/ttf"
        case "otf": "font/otf"
        case "mp3": "audio/mpeg"
        case "m4a": "audio/mp4"
        case "oga", "ogg", "opus": "audio/ogg"
        case "wav": "audio/wav"
        case "flac": "audio/flac"
        case "mp4", "m4v": "video/mp4"
        case "webm": "video/webm"
        case "ogv": "video/ogg"
        case "mov": "video/quicktime"
        case "m3u8": "application/vnd.apple.mpegurl"
        case "ts": "video/mp2t"
        case "pdf": "application/pdf"
        case "epub": "application/epub+zip"
        case "zip": "application/zip"
        case "gz": "application/gzip"
        case "zst": "application/zstd"
        case "tar": "application/x-tar"
        case "wasm": "application/wasm"
        default: nil
        }
    }
}
