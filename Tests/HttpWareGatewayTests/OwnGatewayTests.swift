import Foundation
import Testing

/// The commands of a program with a ware of its own: of the target GatewayExample.
@Suite struct OwnGatewayTests {
    private static let file = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:8080" } }
        services: { app: { baseUrl: "http://127.0.0.1:3000" } }
        chains:
          app:
            middlewares:
              - methodRule: { allow: [GET, HEAD] }
              - bodyLimit
        routes: [{ name: app, service: app, chain: app }]

        """

    @Test func `help and versions name the program`() throws {
        let help = try run("--help")
        #expect(help.output.contains("USAGE: gateway-example <subcommand>"))
        #expect(try run("help", "init").output.contains("USAGE: gateway-example init"))
        #expect(try run("--version").output.wholeMatch(of: /gateway-example \(httpware [0-9.]+\)\n/) != nil)
        #expect(try run("version").output.hasPrefix("gateway-example\nhttpware "))
        #expect(try run("version", "--json").output.contains(#""program": "gateway-example""#))
    }

    @Test func `every text that tells a user to run a command names the program`() throws {
        #expect(try run("init", "gateway", "-").output.contains("gateway-example check FILE"))
        #expect(try run("check", "none.yaml").error == "none.yaml: does not exist; gateway-example init writes one\n")
        #expect(try run("wares", "methodRul").error.hasSuffix("; gateway-example wares lists them\n"))
        #expect(try run("wares", "break").output.contains("`gateway-example break ls`"))
        let commands = try commands()
        #expect(commands.count > 25)
        for command in commands {
            let help = try run("help", command).output
            #expect(!help.contains(/\bhttpware [a-z]/), "\(command): \(help)")
        }
    }

    @Test func `no command writes the name of httpware before that of a command`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/HttpWareCommand")
        let names = Set(try commands())
        let files =
            (FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects as? [URL]) ?? []
        // The texts of a package name httpware itself.
        let sources = files.filter { $0.pathExtension == "swift" && !$0.path.contains("/Packages/") }
        #expect(sources.count > 50)
        for file in sources {
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            for line in lines where !line.drop(while: \.isWhitespace).hasPrefix("//") {
                let named = line.matches(of: /\bhttpware ([a-z]+)/).contains { names.contains(String($0.1)) }
                #expect(!named, "\(file.lastPathComponent): \(line)")
            }
        }
    }

    /// The names of all commands.
    private func commands() throws -> [String] {
        let help = try run("--help").output
        let start = try #require(help.firstRange(of: "SUBCOMMANDS:\n")).upperBound
        return help[start...].matches(of: /(?m)^ {2}([a-z-]+) {2,}/).map { String($0.1) }
    }

    @Test func `wares and schema have the program's own ware beside the built-in ones`() throws {
        let lines = try run("wares").output.split(separator: "\n")
        let names = lines.map { String($0.prefix { $0 != " " }) }
        #expect(names.contains("methodRule") && names.contains("bodyLimit") && names == names.sorted())
        let page = try run("wares", "methodRule").output
        #expect(page.contains("Restricts the methods of requests; answers 405 otherwise."))
        #expect(page.contains("allow") && page.contains("GET, HEAD"))
        #expect(page.contains("middlewares:\n    - methodRule: { allow: [GET, HEAD] }"))
        #expect(
            try run("wares", "methodRul").error.hasPrefix(#"there is no ware "methodRul"; did you mean "methodRule"?"#))
        let schema = try JSONSerialization.jsonObject(with: Data(try run("schema").output.utf8))
        #expect("\(schema)".contains("methodRule"))
    }

    @Test func `check knows the ware and its options`() throws {
        let result = try run("check", "httpware.yaml")
        #expect(result.output == "ok: 1 listener, 1 route, 1 service\n", "\(result.error)")
        #expect(result.status == 0)
    }

    @Test(arguments: [
        ("allow:", "alow:", #"httpware.yaml:7:23: error: methodRule.alow: unknown option; did you mean "allow"?"#),
        (
            "methodRule:", "methodrule:",
            #"httpware.yaml:7:9: error: methodrule: is not a ware; did you mean "methodRule"?"#
        ),
        ("[GET, HEAD]", "[]", "httpware.yaml:7:30: error: methodRule.allow: is empty; write such as [GET, HEAD]"),
        ("- bodyLimit", "- bodyLimt", #"httpware.yaml:8:9: error: bodyLimt: is not a ware; did you mean "bodyLimit"?"#),
    ])
    func `a mistake has line and column and what was meant`(right: String, wrong: String, error: String) throws {
        let result = try run("check", "httpware.yaml", file: OwnGatewayTests.file.replacing(right, with: wrong))
        #expect(result.error == error + "\n")
        #expect(result.status == 1)
    }

    @Test func `explain runs the ware`() throws {
        let refused = try run("explain", "POST", "/orders", "-c", "httpware.yaml")
        #expect(refused.output.contains("methodRule") && refused.output.contains("405"), "\(refused)")
        let passed = try run("explain", "GET", "/orders", "-c", "httpware.yaml")
        #expect(passed.output.contains("methodRule") && !passed.output.contains("405"), "\(passed)")
    }

    @Test func `diff compares the options of the ware`() throws {
        let result = try run(
            "diff", "httpware.yaml", "other.yaml", other: OwnGatewayTests.file.replacing("[GET, HEAD]", with: "[GET]"))
        #expect(result.output.contains("methodRule"), "\(result)")
    }

    @Test func `the documentation lists the types that the module exports`() throws {
        let module = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Sources/HttpWareGateway")
        let exports = try String(contentsOf: module.appending(path: "Exports.swift"), encoding: .utf8)
            .matches(of: /(?m)^@_exported public import \w+ HttpWare\.(\w+)$/).map { String($0.1) }
        let rows = try String(
            contentsOf: module.appending(path: "HttpWareGateway.docc/HttpWareGateway.md"), encoding: .utf8
        )
        .split(separator: "\n").filter { $0.hasPrefix("| ") }
        let listed = rows.flatMap { $0.matches(of: /`(\w+)`/).map { String($0.1) } }
        #expect(listed.sorted() == exports.sorted() && exports.count > 50)
    }

    private struct Outcome {
        let status: Int32
        let output: String
        let error: String
    }

    /// Runs the program in a folder with the file.
    private func run(_ arguments: String..., file: String = file, other: String? = nil) throws -> Outcome {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-own-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(file.utf8).write(to: folder.appending(path: "httpware.yaml"))
        if let other { try Data(other.utf8).write(to: folder.appending(path: "other.yaml")) }
        let process = Process()
        // The tests are built into the same folder.
        process.executableURL = URL(
            filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        )
        .deletingLastPathComponent().appending(path: "GatewayExample")
        process.arguments = arguments
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        process.standardError = try output(to: "error", in: folder)
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let bytes = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return Outcome(
            status: process.terminationStatus, output: String(decoding: bytes, as: UTF8.self),
            error: try String(contentsOf: folder.appending(path: "error"), encoding: .utf8))
    }

    private func output(to name: String, in folder: URL) throws -> FileHandle {
        let place = folder.appending(path: name)
        try Data().write(to: place)
        return try FileHandle(forWritingTo: place)
    }
}
