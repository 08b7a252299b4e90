import CInspectorPage
import Glibc
import HttpWare

extension AdminEndpoint {
    /// The inspector: a page that shows the data of the other endpoints. Its files are constants; it contacts no other server,
    /// and inserts data only as text. If a folder is given, the files are read from there for each request.
    static func page(_ folder: String?) -> [AdminEndpoint] {
        PageFile.all.map { file in
            AdminEndpoint(path: file.name == "index.html" ? "/" : "/\(file.name)", access: .local) { request, _ in
                guard let folder else { return .abort(with: file.response(to: request)) }
                guard let text = TextFile.read("\(folder)/\(file.name)") else {
                    return .abort(with: .problem(.notFound, "\(file.name) is not in the folder of --ui-dir"))
                }
                return .abort(with: PageFile(name: file.name, bytes: Array(text.utf8)).response(to: request))
            }
        }
    }
}

/// A file of the inspector page, with its validator for browsers.
struct PageFile: Sendable {
    let name: String
    private let bytes: [UInt8]
    /// The gzip form of the content; `nil` if it could not be made.
    private let coded: [UInt8]?
    private let type: FieldLine
    private let tag: String

    /// The files of the folder Page when the program was built.
    static let all: [PageFile] = {
        var files: [PageFile] = []
        while let file = cinspector_file(files.count)?.pointee {
            let bytes = UnsafeBufferPointer(start: file.bytes, count: file.count)
            files.append(PageFile(name: String(cString: file.name), bytes: Array(bytes)))
        }
        return files
    }()

    init(name: String, bytes: [UInt8]) {
        self.name = name
        self.bytes = bytes
        var coded: [UInt8] = []
        do {
            let encoder = ContentCoding.gzip.makeEncoder(level: 9)
            try bytes.withUnsafeBytes { try encoder?.encode($0, .finish, into: &coded) }
        } catch {
            coded = []
        }
        self.coded = coded.isEmpty ? nil : coded
        let digest = RunningDigest256()
        bytes.withUnsafeBytes { digest?.add($0) }
        tag = "\"\(digest?.finish().prefix(24) ?? "0")\""
        type =
            switch name.split(separator: ".").last {
            case "html": FieldLine(literal: .contentType, "text/html; charset=utf-8")
            case "css": FieldLine(literal: .contentType, "text/css; charset=utf-8")
            case "svg": FieldLine(literal: .contentType, "image/svg+xml")
            default: FieldLine(literal: .contentType, "text/javascript; charset=utf-8")
            }
    }

    /// The file, or 304 for a browser that has it already (RFC 9110 §13.1.2).
    func response(to request: AdminRequest) -> HttpResponse {
        let known = request.fields.values(of: .ifNoneMatch).joined(separator: ",")
        let takesGzip = request.fields.values(of: .acceptEncoding).joined(separator: ",").contains("gzip")
        let isKnown = known == "*" || known.contains(tag)
        var response = HttpResponse(isKnown ? .notModified : .ok)
        // Cannot throw: the tag is made here.
        try? response.fields.append(.etag, "W/\(tag)")
        response.fields.append(FieldLine(literal: .cacheControl, "no-cache"))
        response.fields.append(FieldLine(literal: .vary, "Accept-Encoding"))
        if isKnown { return response }
        response.fields.append(type)
        if takesGzip, let coded {
            response.fields.append(FieldLine(literal: .contentEncoding, "gzip"))
            response.content = .bytes(coded)
        } else {
            response.content = .bytes(bytes)
        }
        return response
    }
}

/// Reads small text files of the gateway and of operators.
enum TextFile {
    private static let most = 1 << 20

    /// The text of a regular file of at most 1 MiB; `nil` if it is not such a file or cannot be read.
    static func read(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= most else {
            return nil
        }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65536)
        while bytes.count <= most {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count == 0 { return String(validating: bytes, as: UTF8.self) }
            guard count > 0 else { return nil }
            bytes += piece[..<count]
        }
        return nil
    }
}
