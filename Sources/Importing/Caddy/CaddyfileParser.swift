/// A block of a Caddyfile that serves names: its addresses and its directives.
struct CaddyfileSite: Sendable {
    /// The addresses as written.
    var addresses: [CaddyfileToken]
    /// The directives in file order.
    var segments: [CaddyfileSegment]
}

/// Reads a Caddyfile into global options, named routes and sites, with snippets and imports put in their places.
struct CaddyfileParser {
    /// The bounds of one import, so that no file can exhaust memory or stack.
    enum Limit {
        static let depth = 64
        static let imports = 1000
        static let tokens = 400_000
    }

    /// What a Caddyfile says.
    struct Result: Sendable {
        /// The directives of the block without addresses at the top.
        var options: [CaddyfileSegment] = []
        /// The blocks `&(name)`, which `invoke` runs.
        var namedRoutes: [String: [CaddyfileSegment]] = [:]
        /// The sites in file order.
        var sites: [CaddyfileSite] = []
        /// The variables of the environment, each with its file.
        var variables: [(variable: CaddyfileLexer.Variable, file: String)] = []
        /// The imports that found no file, each with its place.
        var missing: [CaddyfileToken] = []
    }

    /// Reads the files that a pattern of `import` names, relative to the file that has it; empty if there is no such file.
    typealias Files = (_ pattern: String, _ from: String) -> [(name: String, bytes: [UInt8])]

    private var tokens: [CaddyfileToken]
    private var cursor = 0
    private var imports = 0
    private var snippets: [String: [CaddyfileToken]] = [:]
    private var result = Result()
    private let files: Files

    /// Reads the file. Throws if it is not a Caddyfile or exceeds a limit.
    static func read(_ bytes: [UInt8], file: String, files: Files) throws(CaddyfileFault) -> Result {
        let (tokens, variables) = try CaddyfileLexer.read(bytes, file: file)
        return try withoutActuallyEscaping(files) { files throws(CaddyfileFault) in
            var parser = CaddyfileParser(tokens: tokens, files: files)
            parser.result.variables = variables.map { ($0, file) }
            try parser.readBlocks()
            return parser.result
        }
    }

    private init(tokens: [CaddyfileToken], files: @escaping Files) {
        self.tokens = tokens
        self.files = files
    }

    private var token: CaddyfileToken? { cursor < tokens.count ? tokens[cursor] : nil }

    private func fault(_ token: CaddyfileToken?, _ reason: String) -> CaddyfileFault {
        let place = token ?? tokens.last
        return CaddyfileFault(file: place?.file ?? "", line: place?.line ?? 1, reason: reason)
    }

    // MARK: Blocks

    private mutating func readBlocks() throws(CaddyfileFault) {
        while let first = token {
            if first.text == "import", first.isFirst, !first.isQuoted {
                try expandImport()
                continue
            }
            if first.closes { throw fault(first, "a brace closes no block") }
            let addresses = try readAddresses()
            guard let last = addresses.last else {
                result.options += try readBraces(1)
                continue
            }
            let name = last.text
            if addresses.count == 1, name.hasPrefix("("), name.hasSuffix(")"), name.utf8.count > 2 {
                snippets[String(name.dropFirst().dropLast())] = try skipBraces()
            } else if addresses.count == 1, name.hasPrefix("&("), name.hasSuffix(")") {
                result.namedRoutes[String(name.dropFirst(2).dropLast())] = try readBraces(1)
            } else if token?.opens == true {
                result.sites.append(CaddyfileSite(addresses: addresses, segments: try readBraces(1)))
            } else {
                // A file of one site needs no braces.
                result.sites.append(CaddyfileSite(addresses: addresses, segments: try readSegments(0)))
            }
        }
    }

    private mutating func readAddresses() throws(CaddyfileFault) -> [CaddyfileToken] {
        var addresses: [CaddyfileToken] = []
        var isContinued = true
        while var address = token, !address.opens {
            if address.closes { throw fault(address, "a brace closes no block") }
            if address.isFirst, !isContinued { break }
            cursor += 1
            isContinued = address.text.hasSuffix(",")
            for part in address.text.split(separator: ",") {
                address.text = String(part)
                addresses.append(address)
            }
        }
        return addresses
    }

    /// Reads the directives between the braces that begin here.
    private mutating func readBraces(_ depth: Int) throws(CaddyfileFault) -> [CaddyfileSegment] {
        guard let open = token, open.opens else { throw fault(token, "a block is missing") }
        cursor += 1
        let segments = try readSegments(depth)
        guard token?.closes == true else { throw fault(open, "a block is not closed") }
        cursor += 1
        return segments
    }

    /// Reads directives up to the brace that closes, or to the end.
    private mutating func readSegments(_ depth: Int) throws(CaddyfileFault) -> [CaddyfileSegment] {
        if depth > Limit.depth { throw fault(token, "blocks are nested deeper than \(Limit.depth)") }
        var segments: [CaddyfileSegment] = []
        while let first = token, !first.closes {
            if first.text == "import", !first.isQuoted {
                try expandImport()
                continue
            }
            if first.opens { throw fault(first, "a block has no name") }
            cursor += 1
            var segment = CaddyfileSegment(words: [first])
            while let word = token, !word.isFirst, !word.closes {
                if word.opens {
                    segment.block = try readBraces(depth + 1)
                    break
                }
                segment.words.append(word)
                cursor += 1
            }
            segments.append(segment)
        }
        return segments
    }

    /// The words between the braces that begin here, unread.
    private mutating func skipBraces() throws(CaddyfileFault) -> [CaddyfileToken] {
        guard let open = token, open.opens else { throw fault(token, "a block is missing") }
        let start = cursor + 1
        var depth = 0
        while let word = token {
            cursor += 1
            if word.opens { depth += 1 }
            if word.closes {
                depth -= 1
                if depth == 0 { return Array(tokens[start..<(cursor - 1)]) }
            }
        }
        throw fault(open, "a block is not closed")
    }

    // MARK: Imports

    /// Puts the words of a snippet or of files in the place of the `import` that stands here.
    private mutating func expandImport() throws(CaddyfileFault) {
        let start = cursor
        guard let keyword = token else { return }
        imports += 1
        if imports > Limit.imports {
            throw fault(keyword, "more than \(Limit.imports) imports; they may import each other in a loop")
        }
        cursor += 1
        var arguments: [CaddyfileToken] = []
        var block: [CaddyfileToken] = []
        while let word = token, !word.isFirst, !word.closes {
            if word.opens {
                block = try skipBraces()
                break
            }
            arguments.append(word)
            cursor += 1
        }
        guard let target = arguments.first?.text else { throw fault(keyword, "import names nothing") }
        var imported: [CaddyfileToken] = []
        if let snippet = snippets[target] {
            imported = snippet
        } else {
            let found = files(target, keyword.file)
            if found.isEmpty {
                var missing = keyword
                missing.text = "import " + arguments.map(\.text).joined(separator: " ")
                result.missing.append(missing)
            }
            for file in found {
                let read = try CaddyfileLexer.read(file.bytes, file: file.name)
                imported += read.tokens
                result.variables += read.variables.map { ($0, file.name) }
            }
        }
        let values = Array(arguments.dropFirst())
        var replaced = imported.flatMap { substitute($0, values, block) }
        if !replaced.isEmpty { replaced[0].isFirst = true }
        let total = tokens.count + replaced.count
        if total > Limit.tokens { throw fault(keyword, "imports make more than \(Limit.tokens) words") }
        tokens.replaceSubrange(start..<cursor, with: replaced)
        cursor = start
    }

    /// The word with `{args[0]}`, `{args[1:]}`, `{args.0}`, `{block}` and `{blocks.name}` replaced.
    private func substitute(
        _ token: CaddyfileToken, _ values: [CaddyfileToken], _ block: [CaddyfileToken]
    ) -> [CaddyfileToken] {
        guard token.text.utf8.contains(UInt8(ascii: "{")) else { return [token] }
        if token.text == "{block}" { return block }
        if token.text.hasPrefix("{blocks."), token.text.hasSuffix("}") {
            return part(String(token.text.dropFirst(8).dropLast()), of: block)
        }
        if token.text.hasPrefix("{args["), token.text.hasSuffix("]}"), token.text.utf8.contains(UInt8(ascii: ":")) {
            let bounds = token.text.dropFirst(6).dropLast(2).split(
                separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let from = min(max(Int(bounds[0]) ?? 0, 0), values.count)
            let to = min(max(Int(bounds[1]) ?? values.count, from), values.count)
            return values[from..<to].map { value in
                var word = value
                word.isFirst = false
                (word.file, word.line) = (token.file, token.line)
                return word
            }
        }
        var word = token
        for (index, value) in values.prefix(64).enumerated() {
            for name in ["{args[\(index)]}", "{args.\(index)}"] {
                word.text = replacing(name, by: value.text, in: word.text)
            }
        }
        return [word]
    }

    /// The words after `name` in the block of an import.
    private func part(_ name: String, of block: [CaddyfileToken]) -> [CaddyfileToken] {
        var depth = 0
        var taken: [CaddyfileToken] = []
        var isTaking = false
        for word in block {
            if depth == 0, word.isFirst {
                isTaking = word.text == name
                if isTaking { continue }
            }
            if word.closes { depth -= 1 }
            if isTaking, !(depth == 0 && (word.opens || word.closes)) { taken.append(word) }
            if word.opens { depth += 1 }
        }
        return taken
    }

    private func replacing(_ part: String, by value: String, in text: String) -> String {
        let pieces = Array(text.utf8).split(separator: Array(part.utf8), omittingEmptySubsequences: false)
        guard pieces.count > 1 else { return text }
        return String(decoding: Array(pieces.joined(separator: Array(value.utf8))), as: UTF8.self)
    }
}
