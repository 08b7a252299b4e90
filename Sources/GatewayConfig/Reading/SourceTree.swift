import HttpWare

/// The joined files of a configuration: the keys of the first file, and in place of `include` the keys of the included files.
struct SourceTree {
    /// The entries in file order. A key can be in several files.
    private(set) var entries: [ConfigNode.Entry] = []
    private(set) var diagnostics = Diagnostics()
    /// The paths of all files that were read, including secrets.
    private(set) var paths: [String] = []
    /// The texts that `${file:…}` inserted.
    private(set) var secrets: Set<String> = []
    /// The patterns of `include`.
    private(set) var patterns: [String] = []
    /// Whether a file could not be read or is not YAML, so that its missing parts would only cause more errors.
    private(set) var isBroken = false
    /// Whether the first file cannot be read, whatever its content.
    private(set) var isUnreadable = false

    private let environment: [String: String]
    private let files: ConfigurationFiles
    private var open: [String] = []

    private static let mostFiles = 1000
    /// The maximum depth of files that include files, which bounds the stack.
    private static let deepest = 32

    /// Reads the file and all files that it includes.
    init(_ path: String, environment: [String: String], files: ConfigurationFiles) {
        self.environment = environment
        self.files = files
        read(path, from: nil)
    }

    private mutating func read(_ path: String, from includer: SourceLocation?) {
        let file = path == "-" ? "stdin" : path
        let place = includer ?? SourceLocation(file: file, line: 0, column: 0)
        let keyPath = includer == nil ? "" : "include"
        if open.contains(path) {
            let circle = (open.drop { $0 != path } + [path]).joined(separator: " → ")
            diagnostics.error(at: place, keyPath, "files include each other in a loop: \(circle)")
            return
        }
        if paths.contains(path) {
            diagnostics.error(at: place, keyPath, "\(path) is included twice")
            return
        }
        paths.append(path)
        guard paths.count <= Self.mostFiles, open.count < Self.deepest else {
            let isDeep = open.count >= Self.deepest
            let problem =
                isDeep ? "files include each other deeper than \(Self.deepest)" : "more than \(Self.mostFiles) files"
            diagnostics.error(at: place, keyPath, problem)
            isBroken = true
            return
        }
        let bytes: [UInt8]
        do {
            bytes = try files.read(path, YamlReader.Limit.bytes)
        } catch {
            diagnostics.error(at: place, keyPath, includer == nil ? error.reason : "\(path): \(error.reason)")
            isBroken = true
            isUnreadable = includer == nil && error.isOfSystem
            return
        }
        let (node, found) = YamlReader.read(bytes, file: file)
        diagnostics.append(found.all)
        guard let node else {
            isBroken = true
            return
        }
        var interpolation = Interpolation(
            environment: environment, files: files, directory: path == "-" ? "" : FilePath.directory(of: path))
        let root = interpolation.apply(to: node)
        diagnostics.append(interpolation.diagnostics.all)
        secrets.formUnion(interpolation.secrets)
        paths += interpolation.read.filter { !paths.contains($0) }
        open.append(path)
        merge(root, path, isFirst: includer == nil)
        open.removeLast()
    }

    private mutating func merge(_ root: ConfigNode, _ path: String, isFirst: Bool) {
        guard let entries = root.entries else {
            diagnostics.error(
                at: root.location, "", "\(root.shown) is not a configuration; begin with version: 1")
            isBroken = true
            return
        }
        checkVersion(entries, root, isFirst: isFirst)
        for entry in entries where entry.key != "version" {
            if entry.key == "include" {
                for member in entry.value.members { include(member, relativeTo: path) }
            } else {
                self.entries.append(entry)
            }
        }
    }

    /// Checks the version: the first file must state it, an included file may.
    private mutating func checkVersion(_ entries: [ConfigNode.Entry], _ root: ConfigNode, isFirst: Bool) {
        guard let version = entries.first(where: { $0.key == "version" }) else {
            if isFirst { diagnostics.error(at: root.location, "version", "is missing; begin with version: 1") }
            return
        }
        if version.value.text != "1" {
            diagnostics.error(
                at: version.value.location, "version", "\(version.value.shown) is not a known version; write 1")
        }
        if entries.first?.key != "version" {
            diagnostics.warning(at: version.location, "version", "belongs at the top of the file")
        }
    }

    private mutating func include(_ node: ConfigNode, relativeTo path: String) {
        guard let name = node.text, !name.isEmpty, !node.isSecret else {
            diagnostics.error(
                at: node.location, "include",
                "\(node.shown) is not the name of a file; write a name such as conf.d/*.yaml"
            )
            return
        }
        let joined = FilePath.joined(path == "-" ? "" : FilePath.directory(of: path), name)
        // Normalises the name as far as the text allows, because cycles are found by name.
        let parts = joined.split(separator: "/", omittingEmptySubsequences: false)
        let target = parts.enumerated().filter { $1 != "." && !($1.isEmpty && $0 > 0) }.map(\.element).joined(
            separator: "/")
        if name.contains(where: { "*?[".contains($0) }) {
            patterns.append(target)
            for match in files.list(target) { read(match, from: node.location) }
        } else {
            read(target, from: node.location)
        }
    }
}
