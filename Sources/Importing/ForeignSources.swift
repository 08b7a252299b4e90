import GatewayConfig
import HttpWare

/// Reads the files of the formats that are trees: YAML, JSON and TOML.
enum ForeignSources {
    /// A Caddyfile, or Caddy's JSON.
    static func caddy(_ sources: [ImportSource], files: ImportFiles) -> GatewayDraft {
        var draft = GatewayDraft()
        for source in sources {
            if source.bytes.first(where: { $0 > 0x20 }) == UInt8(ascii: "{"),
                let root = YamlReader.read(source.bytes, file: source.name).node, let result = CaddyJson.read(root)
            {
                draft.join(CaddyImport.translate(result))
                continue
            }
            do throws(CaddyfileFault) {
                draft.join(try CaddyImport.read(source.bytes, file: source.name) { imported($0, $1, files) })
            } catch {
                draft.note(
                    SourceLocation(file: error.file, line: error.line, column: 1), "the file is not read", error.reason)
            }
        }
        return draft
    }

    /// The files that `import` of a Caddyfile names, relative to the file that has it.
    private static func imported(_ pattern: String, _ from: String, _ files: ImportFiles) -> [(
        name: String, bytes: [UInt8]
    )] {
        let folder = from.lastIndex(of: "/").map { String(from[...$0]) } ?? ""
        let path = pattern.hasPrefix("/") ? pattern : folder + pattern
        let names = path.contains { "*?[".contains($0) } ? files.list(path) : [path]
        return names.prefix(1000).compactMap { name in files.read(name).map { (name, $0) } }
    }

    /// Files of Traefik, by their content in TOML or YAML.
    static func traefik(_ sources: [ImportSource]) -> GatewayDraft {
        var faults = GatewayDraft()
        var trees: [ConfigNode] = []
        for source in sources {
            if source.name.hasSuffix(".toml")
                || !source.name.hasSuffix(".yml") && !source.name.hasSuffix(".yaml") && looksLikeToml(source.bytes)
            {
                do throws(TomlReader.Fault) {
                    trees.append(try TomlReader.read(source.bytes, file: source.name))
                } catch {
                    faults.note(
                        SourceLocation(file: source.name, line: error.line, column: 1), "the file is not read",
                        error.reason)
                }
            } else {
                trees += documents(source, &faults)
            }
        }
        var draft = TraefikImport.translate(trees)
        draft.join(faults)
        return draft
    }

    private static func looksLikeToml(_ bytes: [UInt8]) -> Bool {
        bytes.split(separator: UInt8(ascii: "\n")).prefix(200).contains { line in
            let rest = line.drop { $0 == 0x20 || $0 == 0x09 }
            return rest.first == UInt8(ascii: "[") && line.last != UInt8(ascii: ",")
        }
    }

    /// Manifests of Kubernetes.
    static func kubernetes(_ sources: [ImportSource], as kind: KubernetesImport.Kind) -> GatewayDraft {
        var faults = GatewayDraft()
        let trees = sources.flatMap { documents($0, &faults) }
        var draft = KubernetesImport.translate(trees, as: kind)
        draft.join(faults)
        return draft
    }

    /// Compose files.
    static func compose(_ sources: [ImportSource]) -> GatewayDraft {
        var draft = GatewayDraft()
        for source in sources {
            for tree in documents(source, &draft) {
                draft.join(
                    ComposeImport.translate(tree) { text in
                        YamlReader.read(Array(text.utf8), file: source.name).node
                    })
            }
        }
        return draft
    }

    // MARK: Documents

    /// The documents of a file in YAML. What cannot be read is named, and left out.
    private static func documents(_ source: ImportSource, _ draft: inout GatewayDraft) -> [ConfigNode] {
        var trees: [ConfigNode] = []
        for document in YamlDocuments.split(source.bytes) {
            let (node, diagnostics) = YamlReader.read(document.bytes, file: source.name, mergesKeys: true)
            for diagnostic in diagnostics.all {
                var place = diagnostic.location
                place.line += document.linesBefore
                draft.note(
                    place, diagnostic.keyPath.isEmpty ? "the document is not read" : diagnostic.keyPath,
                    diagnostic.message)
            }
            if let node { trees.append(moved(node, by: document.linesBefore)) }
        }
        return trees
    }

    /// The tree with later places. Trees from files are at most 64 levels deep.
    private static func moved(_ node: ConfigNode, by lines: Int) -> ConfigNode {
        guard lines > 0 else { return node }
        var copy = node
        copy.location.line += lines
        switch node.content {
        case .scalar: break
        case .list(let members): copy.content = .list(members.map { moved($0, by: lines) })
        case .map(let entries):
            copy.content = .map(
                entries.map { entry in
                    var place = entry.location
                    place.line += lines
                    return ConfigNode.Entry(key: entry.key, location: place, value: moved(entry.value, by: lines))
                })
        }
        return copy
    }
}
