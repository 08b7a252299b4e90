import HttpWare

/// Reads files of nginx and puts the directives of included files in the place of each `include`.
struct NginxIncludes {
    /// The bounds of one import.
    private enum Limit {
        static let files = 1000
        static let depth = 16
        static let directives = 200_000
    }

    private let files: ImportFiles
    /// The folder of the first file: nginx resolves relative names from there.
    private let folder: String
    private var fileCount = 0
    private var directiveCount = 0
    private(set) var notes: [(directive: NginxDirective, reason: String, isNeeded: Bool)] = []

    /// Reads the sources in their order.
    static func read(
        _ sources: [ImportSource], files: ImportFiles
    ) throws(NginxFault) -> (
        directives: [NginxDirective], notes: [(directive: NginxDirective, reason: String, isNeeded: Bool)]
    ) {
        var includes = NginxIncludes(files: files, folder: FilePath.directory(of: sources.first?.name ?? ""))
        var directives: [NginxDirective] = []
        for source in sources {
            let parsed = try NginxParser.parse(source.bytes, file: source.name)
            directives += try includes.expanded(parsed, open: [source.name])
        }
        return (directives, includes.notes)
    }

    private init(files: ImportFiles, folder: String) {
        self.files = files
        self.folder = folder
    }

    /// The directives with included ones in the places of `include`. The recursion is as deep as blocks and includes are, which both are bounded.
    private mutating func expanded(
        _ directives: [NginxDirective], open: [String]
    ) throws(NginxFault) -> [NginxDirective] {
        var result: [NginxDirective] = []
        for var directive in directives {
            directiveCount += 1
            guard directiveCount <= Limit.directives else {
                throw NginxFault(place: directive.place, reason: "more than \(Limit.directives) directives")
            }
            directive.order = directiveCount
            if directive.name == "include", directive.block == nil {
                result += try included(directive, open: open)
                continue
            }
            if let block = directive.block { directive.block = try expanded(block, open: open) }
            result.append(directive)
        }
        return result
    }

    private mutating func included(
        _ directive: NginxDirective, open: [String]
    ) throws(NginxFault) -> [NginxDirective] {
        let name = directive.first
        let path = name.hasPrefix("/") || folder.isEmpty ? name : "\(folder)/\(name)"
        let isPattern = name.utf8.contains { "*?[".utf8.contains($0) }
        guard open.count < Limit.depth else {
            throw NginxFault(place: directive.place, reason: "includes are nested deeper than \(Limit.depth) levels")
        }
        var result: [NginxDirective] = []
        for path in isPattern ? files.list(path) : [path] {
            guard !open.contains(path) else {
                throw NginxFault(place: directive.place, reason: "the file includes itself")
            }
            fileCount += 1
            guard fileCount <= Limit.files else {
                throw NginxFault(place: directive.place, reason: "more than \(Limit.files) files are included")
            }
            let known = Self.known(name)
            if let known, known.text == nil {
                notes.append((directive, known.reason, false))
                continue
            }
            guard let bytes = files.read(path) else {
                if let text = known?.text {
                    let parsed = try NginxParser.parse(Array(text.utf8), file: name)
                    for parsed in try expanded(parsed, open: open) {
                        var parsed = parsed
                        parsed.place = directive.place
                        result.append(parsed)
                    }
                    continue
                }
                // What it restricts is not known, so `missing_include` refuses what it would have been part of.
                notes.append(
                    (
                        directive,
                        "the file cannot be read; it may restrict access, so the requests that it concerns are answered 503",
                        true
                    ))
                var missing = directive
                missing.name = Self.missing
                result.append(missing)
                continue
            }
            let parsed = try NginxParser.parse(bytes, file: path)
            result += try expanded(parsed, open: open + [path])
        }
        return result
    }

    /// The name of the directive that stands for a file that cannot be read.
    static let missing = "missing_include"

    /// Files that need not be there: those without effect here, settings of TLS, and Debian's `proxy_params`.
    private static func known(_ name: String) -> (text: String?, reason: String)? {
        switch name.split(separator: "/").last.map(String.init) ?? name {
        case "mime.types": (nil, "media types are built in; types of the ware files adds others")
        case "fastcgi_params", "fastcgi.conf", "fastcgi-php.conf", "uwsgi_params", "scgi_params":
            (nil, "parameters of FastCGI, uwsgi or SCGI, which are not spoken here")
        case "options-ssl-nginx.conf", "ssl-params.conf": ("", "")
        case "proxy_params":
            (
                """
                proxy_set_header Host $http_host;
                proxy_set_header X-Real-IP $remote_addr;
                proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                proxy_set_header X-Forwarded-Proto $scheme;
                """, ""
            )
        default: nil
        }
    }
}
