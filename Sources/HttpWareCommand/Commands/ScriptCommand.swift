import ArgumentParser
import FoundationEssentials
import HttpWare
import ScriptWares

/// `httpware script`: runs a script of the ware `script` alone.
struct ScriptCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "script", abstract: "Run a script of the ware script alone, and print its changes. Sends nothing.",
        discussion: """
            The script is compiled, and its functions are called. Its options have their defaults, unless --option gives others. A script that would wait, for \
            http.fetch or sleep, ends there. Exits with 1 if the script fails.

            A response is read from a file: a status line such as HTTP/1.1 200 OK, field lines, an empty line, and the content.
            """)

    @Argument(help: "The file with the script.", completion: .file(extensions: ["lua"]))
    var path: String
    @Option(help: ArgumentHelp("The request, such as 'GET http://acme.example.com/x'.", valueName: "request"))
    var request = "GET http://example.com/"
    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .singleValue,
        help: "A field of the request, such as 'Accept: text/html'.")
    var headers: [String] = []
    @Option(
        help: ArgumentHelp("The file with a response, for the function response.", valueName: "file"),
        completion: .file())
    var response: String?
    @Option(
        name: .customLong("option"), parsing: .singleValue,
        help: ArgumentHelp("An option of the script, such as header=X-Tenant.", valueName: "name=value"))
    var options: [String] = []
    @Flag(help: "Also print the time of a call.")
    var time = false

    func run() throws {
        let given = try options.map { option in
            guard let sign = option.firstIndex(of: "="), sign > option.startIndex else {
                throw ValidationError("\(option.quotedForErrors) is not an option; write name=value")
            }
            return (name: String(option[..<sign]), value: String(option[option.index(after: sign)...]))
        }
        let trial: ScriptTrial
        do throws(ScriptTrial.Fault) {
            trial = try ScriptTrial(try read(path), name: path, options: given)
        } catch {
            Terminal.error(error.description)
            throw ExitCode(1)
        }
        for warning in trial.warnings { Terminal.error("warning: \(warning)") }
        var isFailed = false
        let original = try parsedRequest()
        var changed = original
        if trial.hasRequest {
            let effects = trial.run(&changed)
            isFailed = effects.isFailed
            try show("request", effects)
            if time { try show(trial.time(original)) }
        }
        if let response, trial.hasResponse {
            guard let text = String(bytes: try fileContent(response), encoding: .utf8),
                let given = ScriptTrial.response(text)
            else {
                throw ValidationError(
                    "\(response.quotedForErrors) is not a response; its first line is like HTTP/1.1 200 OK")
            }
            var answer = given
            let effects = trial.run(&answer, to: changed)
            isFailed = isFailed || effects.isFailed
            try show("response", effects)
            if time { try show(trial.time(changed, given)) }
        }
        if isFailed { throw ExitCode(1) }
    }

    private func show(_ half: String, _ effects: ScriptTrial.Effects) throws {
        try Terminal.result(
            ([half + ": " + effects.decision] + effects.changes.map { "  " + $0 }).joined(separator: "\n"))
    }

    private func show(_ time: Duration) throws {
        let hundredths = (time / .nanoseconds(10)).rounded()
        try Terminal.result("  \(hundredths / 100) µs a call")
    }

    private func read(_ path: String) throws(ScriptTrial.Fault) -> [UInt8] {
        do {
            return try fileContent(path)
        } catch {
            throw ScriptTrial.Fault(lines: ["\(path.quotedForErrors) cannot be read"])
        }
    }

    private func fileContent(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: path))) }

    private func parsedRequest() throws -> HttpRequest {
        let words = request.split(separator: " ", maxSplits: 1)
        guard words.count == 2, let method = HttpMethod(String(words[0])), method != .connect,
            var parsed = try? HttpRequest(method, String(words[1])), parsed.host != nil
        else {
            throw ValidationError("\(request.quotedForErrors) is not a request; write 'GET http://example.com/path'")
        }
        for line in headers {
            guard let colon = line.firstIndex(of: ":"), let name = FieldName(String(line[..<colon])),
                (try? parsed.fields.append(name, String(line[line.index(after: colon)...].drop { $0 == " " }))) != nil
            else { throw ValidationError("\(line.quotedForErrors) is not a field; write 'Name: value'") }
        }
        return parsed
    }
}
