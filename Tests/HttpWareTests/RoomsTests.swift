import Foundation
import Testing

/// The house: which module may import which, and which room of HttpWare may use which. README and Architecture show the same order.
@Suite struct RoomsTests {
    /// The rooms of module HttpWare are on the path of a request: each may use only the rooms to its left.
    private static let rooms = [
        "Loop", "Values", "Formats", "Fields", "Messages", "Content", "Codec", "Options", "Matching", "Tls", "Broker",
        "Chain", "Transport", "Balance", "Attempts", "Routing", "Recording", "Exchange", "Interception", "Calls",
    ]

    /// The rooms of the other modules: a file is in one of them, and a folder that is not listed here is an error.
    private static let otherRooms = [
        "HttpCaching": ["Collapsing", "Freshness", "Keys", "Store", "Store/Memory", "Validation"],
        "DiskCaching": [""],
        "DiskCapturing": [""],
        "Credentials": ["Grants"],
        "Authentication": [""],
        "Acme": ["Client", "Keeping", "Messages"],
        "Capturing": ["Filter", "Har", "Messages", "Model", "Store", "Tap"],
        "Scripting": [""],
        "ScriptWares": [""],
        "Wares": [
            "Caching", "Content", "Fields", "Holding", "Limits", "Logging", "Observing", "Resilience", "Routing",
            "Tokens",
        ],
        "GatewayWares": [
            "", "Access", "Asking", "Callout", "Content", "Debugging", "Files", "Resilience", "Routing", "Signing",
        ],
        "HttpWareRedis": ["Client", "Servers", "Sharing", "Store"],
        "GatewayConfig": ["Chains", "Checking", "Comparing", "Definitions", "Describing", "Discovery", "Reading"],
        "Importing": [
            "", "Caddy", "Compose", "Drafts", "Haproxy", "Kubernetes", "Matching", "Nginx", "Traefik", "Writing",
        ],
        "Jail": ["Doors", "Names", "Namespaces"],
        "HttpGateway": ["Admin", "Discovery", "Downstream", "Lifecycle", "Routing", "Rules", "Trying", "Upstream"],
        "HttpWareClient": ["", "Cookies", "Decoding", "Manager", "Queue", "Routes", "Wares"],
        "HttpWareClientConfiguration": [""],
        "HttpWareFoundation": [""],
        "HttpWareTesting": ["Clocks", "Exchanges", "Origins"],
        "HttpWareCommand": ["", "Commands", "Display", "Mcp", "Packages", "Trust"],
        "HttpWareGateway": [""],
        "HttpWareProgram": [""],
        "GatewayExample": [""],
    ]

    /// The modules of ours that each module may import: those above it.
    private static let imports: [String: Set<String>] = [
        "Scripting": [],
        "HttpWare": [],
        "HttpCaching": ["HttpWare"],
        "DiskCaching": ["HttpWare", "HttpCaching"],
        "Capturing": ["HttpWare"],
        "DiskCapturing": ["HttpWare", "HttpCaching", "Capturing"],
        "Credentials": ["HttpWare"],
        "Authentication": ["HttpWare", "Credentials"],
        "Acme": ["HttpWare", "Credentials"],
        "Wares": ["HttpWare", "HttpCaching", "Credentials"],
        "ScriptWares": ["HttpWare", "HttpCaching", "Scripting", "Wares"],
        "GatewayWares": [
            "HttpWare", "HttpCaching", "Authentication", "Capturing", "Credentials", "ScriptWares", "Wares",
        ],
        "HttpWareRedis": ["HttpWare", "Acme", "HttpCaching", "Credentials", "Wares", "GatewayWares"],
        "GatewayConfig": ["HttpWare", "Acme", "Capturing", "HttpCaching", "Credentials"],
        "Importing": ["HttpWare", "GatewayConfig"],
        "Jail": ["HttpWare"],
        "HttpGateway": [
            "HttpWare", "Acme", "Capturing", "HttpCaching", "DiskCaching", "DiskCapturing", "Credentials", "Wares",
            "GatewayWares", "HttpWareRedis", "GatewayConfig",
        ],
        "HttpWareClient": ["HttpWare", "HttpCaching", "Credentials", "Wares"],
        "HttpWareClientConfiguration": [
            "HttpWare", "HttpCaching", "GatewayWares", "GatewayConfig", "HttpWareClient",
        ],
        "HttpWareCombine": ["HttpWareClient"],
        "HttpWareFoundation": ["HttpWare"],
        "HttpWareTesting": ["HttpWare", "Capturing"],
        "HttpWareCommand": [
            "HttpWare", "Acme", "Capturing", "HttpCaching", "DiskCaching", "ScriptWares", "Wares", "GatewayWares",
            "GatewayConfig", "HttpGateway", "Importing", "Jail",
        ],
        "HttpWareGateway": ["HttpWare", "HttpWareCommand"],
        "HttpWareProgram": ["HttpWareGateway"],
        "GatewayExample": ["HttpWareGateway"],
    ]

    /// The one place that wraps each C library; `CSystemShims` is a shim.
    private static let wrappers: [String: Set<String>] = [
        "CLibevent": ["HttpWare/Loop"],
        "CSystemShims": [
            "HttpWare/Loop", "HttpWareTesting/Origins", "HttpWareCommand/Commands", "HttpWareCommand/Trust",
        ],
        "CAres": ["HttpWare/Transport"], "CNghttp2": ["HttpWare/Codec"], "CPcre2": ["HttpWare/Matching"],
        "COpenSSL": ["HttpWare/Tls"], "COpenSSLShims": ["HttpWare/Tls"], "CHiredis": ["HttpWareRedis/Client"],
        "CZlib": ["HttpWare/Codec"], "CBrotli": ["HttpWare/Codec"], "CZstd": ["HttpWare/Codec"],
        "CLmdb": ["DiskCaching/"], "CCrypt": ["Authentication/"], "CJailShims": ["Jail/Names", "Jail/Namespaces"],
        "CPsl": ["HttpWareClient/Cookies"],
        "CInspectorPage": ["HttpGateway/Admin"], "CAddonHost": ["GatewayWares/Callout"], "CLuaShims": ["Scripting/"],
        "CYaml": ["GatewayConfig/Reading"],
    ]

    private struct File {
        let module: String
        let room: String
        let name: String
        let code: String

        var path: String { "\(module)/\(room)/\(name)" }
    }

    private static let sources = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources")

    private static func files(of module: String) throws -> [File] {
        let folder = sources.appending(path: module)
        let paths = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects as? [URL]
        return try (paths ?? []).filter { $0.pathExtension == "swift" }.map { file in
            let room = file.deletingLastPathComponent().path.dropFirst(folder.path.count).drop { $0 == "/" }
            return File(
                module: module, room: String(room), name: file.lastPathComponent, code: try withoutComments(file))
        }
    }

    /// The text without what stands behind two slashes; a URL in a literal goes too, which does no harm here.
    private static func withoutComments(_ file: URL) throws -> String {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
            .map { line in line.range(of: "//").map { String(line[..<$0.lowerBound]) } ?? String(line) }
            .joined(separator: "\n")
    }

    @Test func `each file is in a room of the list`() throws {
        for (module, _) in RoomsTests.imports where module != "HttpWareCombine" {
            let rooms = module == "HttpWare" ? RoomsTests.rooms : RoomsTests.otherRooms[module] ?? []
            let files = try RoomsTests.files(of: module)
            #expect(!files.isEmpty, "\(module)")
            for file in files { #expect(rooms.contains(file.room), "\(file.path)") }
            for room in rooms { #expect(files.contains { $0.room == room }, "\(module)/\(room) is empty") }
        }
    }

    @Test func `a module imports only the modules above it`() throws {
        let declaration = /(?m)^(?:@\w+ )?(?:(?:public|package|internal) )?import (?:\w+ )?(\w+)/
        for (module, allowed) in RoomsTests.imports {
            for file in try RoomsTests.files(of: module) {
                for match in file.code.matches(of: declaration) {
                    let name = String(match.1)
                    guard RoomsTests.imports[name] != nil else { continue }
                    #expect(allowed.contains(name), "\(file.path) imports \(name)")
                }
            }
        }
    }

    /// The modules that a program on the client library links.
    @Test func `the client library needs neither LMDB, hiredis, YAML nor what only gateways do`() {
        var needed: Set = ["HttpWareClient", "HttpWareCombine"]
        var former: Set<String> = []
        while former != needed {
            former = needed
            for module in former { needed.formUnion(RoomsTests.imports[module] ?? []) }
        }
        #expect(needed.contains("Wares"))
        #expect(
            needed.isDisjoint(with: [
                "DiskCaching", "HttpWareRedis", "GatewayConfig", "Acme", "Authentication", "Capturing", "GatewayWares",
                "Scripting", "ScriptWares",
            ]))
    }

    @Test func `a room uses only types of itself and of the rooms to its left`() throws {
        let files = try RoomsTests.files(of: "HttpWare")
        let declaration =
            /(?m)^(?:(?:public|package|final|fileprivate|private|@\w+|indirect)\s+)*(?:struct|class|enum|protocol|typealias)\s+([A-Z]\w*)/
        var homes: [String: Int] = [:]
        for (place, room) in RoomsTests.rooms.enumerated() {
            for file in files where file.room == room {
                for match in file.code.matches(of: declaration) { homes[String(match.1)] = place }
            }
        }
        #expect(homes.count > 100)
        for file in files {
            let place = try #require(RoomsTests.rooms.firstIndex(of: file.room))
            for word in Set(file.code.matches(of: /\b[A-Z]\w*/).map { String($0.0) }) {
                if let home = homes[word], home > place {
                    Issue.record("\(file.path) uses \(word) of \(RoomsTests.rooms[home])")
                }
            }
        }
    }

    /// Of members whose name has two words or more and is declared in rooms to the right only. Names of the standard library are left out.
    @Test func `a room uses only members of itself and of the rooms to its left`() throws {
        let files = try RoomsTests.files(of: "HttpWare")
        let declaration =
            /(?m)^ {4,}(?:(?:public|package|final|private\(set\)|internal\(set\)|package\(set\)|static|mutating|override|@\w+(?:\([^)]*\))?|borrowing|consuming|lazy|weak|unowned|let|var)\s+)*(?:func|var|let)\s+([a-z]+[A-Z]\w*)/
        let standard: Set = [
            "hasSuffix", "hasPrefix", "endIndex", "startIndex", "firstIndex", "lastIndex", "rawValue", "withValue",
        ]
        var homes: [String: Int] = [:]
        for file in files {
            let place = try #require(RoomsTests.rooms.firstIndex(of: file.room))
            for match in file.code.matches(of: declaration) {
                homes[String(match.1), default: .max] = min(place, homes[String(match.1), default: .max])
            }
        }
        #expect(homes.count > 800)
        for file in files {
            let place = try #require(RoomsTests.rooms.firstIndex(of: file.room))
            for match in file.code.matches(of: /[\w)\]?!]\.([a-z]+[A-Z]\w*)/) where !standard.contains(String(match.1))
            {
                // A private member of its own may have the same name.
                let isOwn = file.code.contains("var \(match.1)") || file.code.contains("func \(match.1)(")
                if let home = homes[String(match.1)], home > place, !isOwn {
                    Issue.record("\(file.path) uses \(match.1) of \(RoomsTests.rooms[home])")
                }
            }
        }
    }

    /// The files outside of the rooms `Codec` and `Formats` that name the line end of HTTP, each with its reason.
    private static let lineEnds = [
        "FieldLine.swift":
            "a message keeps its field lines as they go over the wire, so that neighbours are copied in one piece",
        "MultipartRanges.swift": "writes multipart/byteranges, RFC 9110 §14.6",
        "Multipart.swift": "writes multipart/form-data, RFC 7578",
        "LineSplitter.swift": "splits content into lines that end with LF or CRLF",
        "TokenPrefixes.swift": "knows the ends of lines in base64, RFC 2045 §6.8",
        "SentUrl.swift": "removes the line ends that browsers remove from URLs",
        "JavaTrustStore.swift": "writes object identifiers that contain the byte",
        "AwsChunkedContent.swift": "writes the content coding aws-chunked",
        "NodePreload.swift": "is a script for Node, which edits heads that Node has made",
        "ScriptedOrigin.swift": "speaks the raw bytes that a test gives it",
        "TomlReader.swift": "reads lines of TOML, which end with LF or CRLF",
        "TraefikRule.swift": "reads escapes in rules of Traefik",
        "YamlDocuments.swift": "splits a file of several documents at its lines",
        "CaddyfileLexer.swift": "reads lines of a Caddyfile, which end with LF or CRLF",
    ]

    @Test func `only the rooms Codec and Formats know how a line ends`() throws {
        var unused = Set(RoomsTests.lineEnds.keys)
        for module in RoomsTests.imports.keys {
            for file in try RoomsTests.files(of: module)
            where !["HttpWare/Codec", "HttpWare/Formats"].contains("\(file.module)/\(file.room)") {
                guard file.code.contains(/\\r\\n|0x0[dD]\b|\\u\{0*[dD]\}/) else { continue }
                #expect(RoomsTests.lineEnds[file.name] != nil, "\(file.path) writes or reads a line end of HTTP")
                unused.remove(file.name)
            }
        }
        #expect(unused.isEmpty, "listed without need")
    }

    @Test func `a C library is imported in the one room that wraps it`() throws {
        for module in RoomsTests.imports.keys {
            for file in try RoomsTests.files(of: module) {
                for (library, rooms) in RoomsTests.wrappers where file.code.contains("import \(library)\n") {
                    #expect(rooms.contains("\(module)/\(file.room)"), "\(file.path) imports \(library)")
                }
            }
        }
    }

    @Test func `a file of more than 400 lines says before its first declaration why it is one file`() throws {
        for module in RoomsTests.imports.keys {
            for file in try RoomsTests.files(of: module) where file.code.count(where: { $0 == "\n" }) > 400 {
                let text = try String(
                    contentsOf: RoomsTests.sources.appending(path: file.path), encoding: .utf8)
                let head = text.split(separator: "\n").prefix { $0.hasPrefix("//") || $0.contains("import ") }
                #expect(head.contains { $0.hasPrefix("// One file") }, "\(file.path)")
            }
        }
    }
}
