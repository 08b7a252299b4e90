import HttpCaching
public import HttpWare
import Scripting
import Wares

extension Script: ConfigurableWare {
    public static let name: WareName = "script"
    public static let about = WareAbout(
        "Runs a script in Lua that can read, change and answer requests and responses.",
        source: "Lua 5.4",
        example: #"""
            - script: { file: conf/wares/tenant.lua, options: { header: X-Tenant } }
            - script:
                source: |
                  return {
                    request = function(req)
                      if req.path:match("^/old/") then return { status = 410, text = "gone\n" } end
                    end,
                  }
            """#,
        details: #"""
            The script returns a table with the functions `request` and `response`, and with the names and defaults of its options.
            `request` gets the request, the options and the exchange. If it returns nothing, the request passes. If it returns a
            table with `status`, `fields` and one of `text`, `html`, `json` or `body`, this is the response, and nothing goes
            upstream. `response` gets the response in place of the request, and the response that it returns replaces that one.

            Each loop has a state of its own, of at most `memory`. A call runs for at most `time`, and takes at most `timeout`
            with its waits for `http.fetch`, `store` and `sleep`. A script that exceeds a limit or has an error fails: the exchange is
            answered with 500, or 502 on the way back. With `onError: open`, the exchange continues unchanged.

            A script has no access to files, processes or the network, except by `http.fetch`: to services by their names, and
            to hosts that `allowUrls` lists. Global variables cannot be changed. The script is part of the configuration: a
            changed file is loaded by a reload, and one with an error keeps the running configuration.
            """#,
        otherNames: ["lua", "luaScript", "plugin"])

    public init(options: inout OptionsReader) {
        var limits = LoadedScript.Limits()
        var file: Located<FilePath>?
        var source: Located<String>?
        var memory = ByteCount.mebibytes(16)
        var mode: FailureMode?
        var store: NamedStore?
        options.read("file", into: &file, doc: "file with the script, at most 256KiB; only one of file and source")
        options.read("source", into: &source, doc: "the script itself; only one of file and source")
        options.requireOne(of: "file", "source")
        let given = options.readNode("options", type: "map", doc: "values of the script's own options")
        options.read(
            "memory", into: &memory, in: .mebibytes(1) ... .gibibytes(1),
            doc: "memory of the script's state on each loop")
        options.read(
            "time", into: &limits.state.callTime, in: .milliseconds(1) ... .milliseconds(50),
            doc: "maximum time of running in one call")
        options.read(
            "timeout", into: &limits.timeout, in: .milliseconds(1) ... .seconds(3600),
            doc: "maximum time of one call with its waits")
        options.read(
            "maxCalls", into: &limits.calls, in: 0...1000, doc: "maximum calls of http.fetch and store in one call")
        options.readStore("store", into: &store, doc: "store of the script's values: memory, or the name of one")
        options.read("allowUrls", into: &limits.allowedHosts, doc: "hosts that http.fetch may name in a URL")
        options.read(
            "onError", into: &mode,
            doc:
                "the treatment of an exchange whose script fails: closed answers 500, or 502 on the way back, open continues unchanged; by default the script decides, else closed"
        )
        limits.state.memory = memory.bytes
        let script = Script.load(file, source, given, limits, &options)
        self.init(
            script, failsOpen: mode.map { $0 == .open } ?? script?.failsOpen ?? false,
            // Without a configuration, no store can be found. That is reported as an error already.
            store: (store ?? NamedStore(.builtin)).records)
    }

    private static let largest = 256 << 10

    private static func load(
        _ file: Located<FilePath>?, _ source: Located<String>?, _ given: ConfigNode?, _ limits: LoadedScript.Limits,
        _ options: inout OptionsReader
    ) -> LoadedScript? {
        guard !options.isDescribing else { return nil }
        let key: String
        let name: String
        let bytes: [UInt8]
        if let file {
            key = "file"
            let path = options.joined(file.value.path, writtenIn: file.location.file)
            guard let content = LoadedFile.read(path, "file", upTo: largest, &options) else { return nil }
            name = file.value.path
            bytes = content
        } else if let source {
            key = "source"
            name = "source"
            bytes = Array(source.value.utf8)
            guard bytes.count <= largest else {
                options.fail(at: key, "is larger than 256KiB")
                return nil
            }
        } else {
            return nil
        }
        /// A line of the script's file; for a script in the configuration, its place there.
        func place(_ line: Int?) -> SourceLocation {
            guard let file else { return options.location(of: key) }
            return SourceLocation(
                file: FilePath.joined(file.value.path, writtenIn: file.location.file), line: line ?? 1, column: 1)
        }
        var mistakes = LoadedScript.Mistakes()
        var reader = ScriptOptions()
        do {
            let script = try LoadedScript(bytes, name: name, limits: limits, mistakes: &mistakes) { defaults in
                reader.read(given, defaults: defaults)
            }
            options.noteNames(in: String(decoding: bytes, as: UTF8.self), of: "services")
            for warning in mistakes.warnings { options.warn(at: key, in: place(nil), warning) }
            for error in mistakes.errors { options.fail(at: key, in: place(nil), error) }
            for mistake in reader.mistakes {
                options.fail(
                    at: mistake.key.isEmpty ? "options" : "options.\(mistake.key)", in: mistake.location,
                    mistake.message)
            }
            return script
        } catch {
            let line = file == nil ? error.line.map { "line \($0): " } ?? "" : ""
            options.fail(at: key, in: place(error.line), line + error.reason)
            return nil
        }
    }
}
