import HttpCaching
public import HttpWare
import Wares

/// Serves files from a folder, such as a web site or a single-page app; nothing goes upstream.
///
/// Frequently requested files are kept, small ones with their content. Other files are read on separate threads.
public struct Files: Middleware {
    /// A coding of a compressed sibling, named by its file extension.
    public enum Precompressed: String, OptionWord {
        case zst, br, gz

        var coding: ContentCoding {
            switch self {
            case .zst: .zstd
            case .br: .br
            case .gz: .gzip
            }
        }
    }

    /// The prefix removed from paths before files are looked up. It begins with a slash and does not end with one.
    private let strip: String?
    /// The answered methods: GET, HEAD or both.
    private let methods: [HttpMethod]
    private let allow: FieldLine
    private let tree: FileTree

    /// Serves the files of a folder. Throws when the folder cannot be opened.
    public init(root: String, fallback: String? = nil, browse: Bool = false, cacheControl: String? = nil)
        throws(SystemError)
    {
        var manner = FileTree.Manner()
        manner.fallback = fallback.flatMap { FilePlace("/\($0)", showsHidden: true) }
        manner.browse = browse
        manner.cacheControl = cacheControl.flatMap { (try? FieldLine(.cacheControl, $0)) == nil ? nil : $0 }
        self.init(try OpenedFolder(path: root), manner, strip: nil, methods: [.get, .head])
    }

    private init(_ root: OpenedFolder?, _ manner: FileTree.Manner, strip: String?, methods: [HttpMethod]) {
        tree = FileTree(root, manner)
        self.strip = strip
        self.methods = methods
        let names = methods.map(\.name).joined(separator: ", ")
        allow = (try? FieldLine(.allow, names)) ?? FieldLine(literal: .allow, "GET, HEAD")
    }

    // MARK: Deciding

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard methods.contains(request.method) else {
            var response = HttpResponse.problem(.methodNotAllowed, "files are only read")
            response.fields.append(allow)
            return .abort(with: response)
        }
        let key = request.path
        let now = exchange.now.nanoseconds
        if let entry = tree.fresh(key, at: now) { return .abort(with: answer(entry, request, exchange)) }
        guard let place = place(of: key, request) else { return .abort(with: Files.absent) }
        let finding = tree.find(place, key, at: now, exchange.wallNow, waits: false)
        switch finding {
        case .wouldWait, .list: return .wait { try await finish(finding, place, key, &$0, $1) }
        default: return .abort(with: answer(finding, request, exchange))
        }
    }

    /// The file's place; `nil` if the path cannot name a file.
    private func place(of path: String, _ request: HttpRequest) -> FilePlace? {
        var path = path[...]
        if let strip, path.hasPrefix(strip) {
            let rest = path.dropFirst(strip.count)
            if rest.isEmpty { return .unslashedRoot }
            if rest.first == "/" { path = rest }
        }
        guard request.hasPath else { return nil }
        return FilePlace(path, showsHidden: tree.manner.hidden)
    }

    /// Continues the lookup on threads that may wait for the disk.
    private func finish(
        _ finding: FileTree.Finding, _ place: FilePlace, _ key: String, _ request: inout HttpRequest,
        _ exchange: Exchange
    ) async throws -> Verdict {
        let (tree, now, time) = (self.tree, exchange.now.nanoseconds, exchange.wallNow)
        var finding = finding
        if case .wouldWait = finding {
            finding = try await Files.elsewhere { tree.find(place, key, at: now, time, waits: true) } ?? .wouldWait
        }
        guard case .list(let folder) = finding else { return .abort(with: answer(finding, request, exchange)) }
        let page = try await Files.elsewhere { FolderPage.make(folder, place, showsHidden: tree.manner.hidden) }
        guard let made = page else { return .abort(with: Files.busy) }
        guard let page = made else { return .abort(with: .problem(.internalServerError, "the folder cannot be read")) }
        return .abort(with: HttpResponse(.ok, fields: FolderPage.fields, content: .bytes(page)))
    }

    /// Runs work on another thread; `nil` if too much work waits there.
    private static func elsewhere<Value: Sendable>(_ work: @escaping @Sendable () -> Value) async throws -> Value? {
        let wait = LoopWait<Value>()
        guard FileTree.readers.submit(work, completion: { wait.resume(returning: $0) }) else { return nil }
        return try await wait.value()
    }

    // MARK: Answering

    private static let absent = HttpResponse.problem(.notFound, "there is no such file")

    private static var busy: HttpResponse {
        var response = HttpResponse.problem(.serviceUnavailable, "too many reads wait for the disk")
        response.fields.set(.retryAfter, to: 1)
        return response
    }

    private func answer(_ finding: FileTree.Finding, _ request: HttpRequest, _ exchange: Exchange) -> HttpResponse {
        switch finding {
        case .file(let entry): answer(entry, request, exchange)
        case .folder: redirect(request)
        case .absent, .list: Files.absent
        case .forbidden: .problem(.forbidden, "the file is not readable")
        case .wouldWait: Files.busy
        case .failed(let code) where SystemError("open", code: code).isOutOfDescriptors: Files.busy
        case .failed: .problem(.internalServerError, "the file cannot be read")
        }
    }

    /// A redirect to the same path with a slash at its end. It is relative to the path that the client sent, so it keeps the host
    /// and any prefix that was removed on the way. With `./` a segment may contain a colon: RFC 3986 §4.2.
    private func redirect(_ request: HttpRequest) -> HttpResponse {
        let segment = Files.lastSegment(of: request)
        guard !segment.isEmpty else { return Files.absent }
        var location = Array("./".utf8) + segment + [0x2f]
        request.withReceivedTarget { target in
            if let question = target.firstIndex(of: 0x3f) { location += target[question...] }
        }
        var response = HttpResponse(.permanentRedirect)
        // These bytes come from the request line, which cannot contain a byte that a field must not hold.
        guard (try? response.fields.append(.location, raw: location)) != nil else { return Files.absent }
        return response
    }

    /// The part of the client's path after the last slash.
    private static func lastSegment(of request: HttpRequest) -> [UInt8] {
        var segment: [UInt8] = []
        request.withReceivedTarget { target in
            let path = target.prefix { $0 != 0x3f }
            segment = Array(path[path.index(after: path.lastIndex(of: 0x2f) ?? path.startIndex)...])
        }
        return segment
    }

    private static let conditions = KnownFields(
        .ifMatch, .ifUnmodifiedSince, .ifNoneMatch, .ifModifiedSince, .range)

    private func answer(_ entry: FileEntry, _ request: HttpRequest, _ exchange: Exchange) -> HttpResponse {
        let offer = entry.offer(request)
        let all = 0..<offer.file.size
        guard request.fields.mayContain(Files.conditions) else { return Files.response(.ok, offer, offer.fields, all) }
        // RFC 9110 §13.2.2: the conditions in this order, then the range.
        let now = exchange.wallNow
        guard Preconditions.areMet(request.fields, current: offer.validators, now: now) else {
            return .problem(.preconditionFailed, "the file is another than the request names")
        }
        if Preconditions.areConditional(request.fields),
            Preconditions.decide(request.fields, stored: offer.validators, received: now) == .notModified
        {
            return HttpResponse(.notModified, fields: offer.notModified)
        }
        guard request.method == .get, request.fields.contains(.range),
            Preconditions.allowsRange(request.fields, stored: offer.validators, now: now),
            let range = ByteRange(request.fields.values(of: .range), length: all.count)
        else { return Files.response(.ok, offer, offer.fields, all) }
        switch range {
        case .part(let part):
            var fields = offer.fields
            fields.append(.contentRange) {
                $0.write("bytes ")
                $0.write(part.lowerBound)
                $0.write("-")
                $0.write(part.upperBound - 1)
                $0.write("/")
                $0.write(all.count)
            }
            return Files.response(.partialContent, offer, fields, part)
        case .unsatisfiable:
            var response = HttpResponse(.rangeNotSatisfiable, fields: offer.notModified)
            response.fields.append(.contentRange) {
                $0.write("bytes */")
                $0.write(all.count)
            }
            return response
        // A coding would apply to all parts together. The whole file is always a valid answer: RFC 9110 §14.2.
        case .parts where offer.fields.contains(.contentEncoding): return Files.response(.ok, offer, offer.fields, all)
        case .parts(let ranges): return Files.response(ofParts: ranges, offer)
        }
    }

    /// Several parts in one response. RFC 9110 §15.3.7.2.
    private static func response(ofParts ranges: [Range<Int>], _ offer: FileEntry.Offer) -> HttpResponse {
        let parts = MultipartRanges(ranges, of: offer.file.size, type: offer.fields[.contentType])
        var fields = offer.fields
        // Cannot throw: the media type was accepted before, and the boundary consists of letters and digits.
        try? fields.set(.contentType, to: parts.type)
        if let content = offer.file.content {
            return HttpResponse(.partialContent, fields: fields, content: .bytes(parts.content(of: content)))
        }
        guard let file = offer.file.opened else { return absent }
        let pieces = zip(parts.heads, ranges).map { (head: $0, range: $1) }
        let source = FileParts(file, pieces, end: parts.end, queue: FileTree.readers)
        return HttpResponse(.partialContent, fields: fields, source: source, length: parts.count)
    }

    private static func response(
        _ status: HttpStatus, _ offer: FileEntry.Offer, _ fields: HttpFields, _ part: Range<Int>
    ) -> HttpResponse {
        if let content = offer.file.content {
            return HttpResponse(
                status, fields: fields,
                content: .bytes(part.count == content.count ? content : Array(content[part])))
        }
        guard let file = offer.file.opened else { return absent }
        return HttpResponse(
            status, fields: fields, source: FileSource(file, part, queue: FileTree.readers), length: part.count)
    }
}

extension Files: AnsweringWare {}

extension Files: ConfigurableWare {
    public static let name: WareName = "files"
    public static let about = WareAbout(
        "Serves files from a folder, such as a web site or a single-page app; nothing goes upstream.",
        source: "RFC 9110 §13, §14; nginx, Caddy",
        example: #"""
            - files: { root: conf/wares/site, strip: /docs, browse: true }
              if: { path: "/docs/**" }
            - files: { root: conf/wares/site, fallback: index.html, cacheControl: no-cache } # a single-page app
            """#,
        details: #"""
            Files are found beneath `root` only. Symbolic links may lead from one place beneath it to another; absolute links,
            and links that lead out of it, answer 404. So do pipes, devices and sockets, two slashes in a row, encoded slashes,
            and names that begin with a dot, except `.well-known`. The folder is opened when the configuration is loaded; if
            `root` is a link that leads to another folder since, a reload opens that.

            A folder answers with the first file of `index` that it contains, with a list if `browse` is true, else with
            `fallback` or 404. A path that names a folder without a slash at its end is redirected (308) to the same path with
            the slash. A relative `root` is relative to the configuration file that contains it.

            Every file has an `ETag`, made from its size and modification time, and `Last-Modified`. A request for ranges
            gets these parts (206): one by itself, several as `multipart/byteranges`. Ranges that overlap, or are less than
            80 bytes apart, become one. A request for more than 16 ranges, or for several ranges of a compressed sibling, gets
            the whole file. If a client accepts a coding of
            `precompressed` and the file has a sibling of that name (`app.js.br` beside `app.js`), the sibling is sent; of
            equally wanted ones, the first in the list. Files without a sibling are compressed by `compress`.

            A file that is asked for often is looked at again after a second: a change may be seen that much later. A file that
            becomes shorter while it is sent ends the connection. Files must be replaced by a rename, not written in place.
            """#,
        otherNames: ["static", "staticFiles", "fileServer", "file", "root", "tryFiles", "sendfile", "spa"])

    public init(options: inout OptionsReader) {
        var root: FilePath?
        var manner = FileTree.Manner()
        var fallback: String?
        var strip: String?
        var types: OptionMap<String, String> = [:]
        var methods: [HttpMethod] = [.get, .head]
        options.read("root", into: &root, doc: "folder with the files")
        options.read("index", into: &manner.index, doc: "files that stand for their folder; the first that exists")
        options.read(
            "fallback", into: &fallback,
            doc: "file beneath root that is sent, with 200, in place of 404; for single-page apps")
        options.read(
            "strip", into: &strip,
            doc: "whole segments to remove from the front of the path before a file is looked for")
        options.read(
            "precompressed", into: &manner.precompressed,
            doc: "extensions of compressed siblings, in the order of preference")
        options.read("browse", into: &manner.browse, doc: "lists folders that have no index")
        options.read("hidden", into: &manner.hidden, doc: "serves names that begin with a dot, too")
        options.read("cacheControl", into: &manner.cacheControl, doc: "Cache-Control of files")
        options.read(
            "types", into: &types,
            doc: "media types by extension, such as md: text/markdown; replaces or adds to the built-in ones")
        options.read("methods", into: &methods, doc: "methods that are answered: GET, HEAD; others are 405")
        options.require("root")
        for name in manner.index where FilePlace("/\(name)", showsHidden: true).map(\.isFolder) ?? true {
            options.fail(at: "index", "\(name.quotedForErrors) is not the name of a file, such as index.html")
        }
        if let text = fallback {
            manner.fallback = FilePlace(text.hasPrefix("/") ? text : "/\(text)", showsHidden: true)
            if manner.fallback?.isFolder ?? true {
                options.fail(at: "fallback", "\(text.quotedForErrors) is not a file beneath root, such as index.html")
            }
        }
        if let text = manner.cacheControl, (try? FieldLine(.cacheControl, text)) == nil || text.isEmpty {
            options.fail(at: "cacheControl", "\(text.quotedForErrors) is not a field value, such as max-age=3600")
            manner.cacheControl = nil
        }
        for type in types {
            let key = type.key.hasPrefix(".") ? String(type.key.dropFirst()) : type.key
            if key.isEmpty || key.contains("/") || key.contains(".") {
                options.fail(at: "types", "\(type.key.quotedForErrors) is not an extension, such as md")
            } else if (try? FieldLine(.contentType, type.value)) == nil
                || MediaPattern(String(type.value.prefix { $0 != ";" }))?.isExact != true
            {
                options.fail(at: "types", "\(type.value.quotedForErrors) is not a media type, such as text/markdown")
            } else {
                manner.types[key.lowercased()] = type.value
            }
        }
        if methods.isEmpty || !methods.allSatisfy({ $0 == .get || $0 == .head }) {
            options.fail(at: "methods", "files are only read; write GET, HEAD or both")
        }
        strip = Rewrite.prefix(strip, "strip", &options)
        self.init(Files.open(root, &options), manner, strip: strip, methods: methods)
    }

    /// The folder; `nil`, with a reported mistake, if it cannot be opened.
    private static func open(_ root: FilePath?, _ options: inout OptionsReader) -> OpenedFolder? {
        guard let root, !options.isDescribing else { return nil }
        if let refusal = FileGate.refusal {
            options.fail(at: "root", "\(root.path.quotedForErrors) cannot be opened: \(refusal)")
            return nil
        }
        do throws(SystemError) {
            let folder = try OpenedFolder(path: root.path)
            // If another folder has taken its place, a reload builds the ware again.
            options.noteFile(root.path, content: Array("\(folder.status.device) \(folder.status.inode)".utf8))
            return folder
        } catch {
            options.fail(
                at: "root", "\(root.path.quotedForErrors) cannot be opened: \(SystemError.text(of: error.code))")
            return nil
        }
    }
}
