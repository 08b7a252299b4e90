import ArgumentParser
import GatewayConfig
import HttpGateway
import HttpWare

/// `httpware explain`: the effect of a configuration on a request.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain", abstract: "Explain what a configuration would do with a request. Sends nothing.",
        discussion: """
            Shows the listener, the route and the service with their lines in the file, why earlier routes did not match, the \
            chain in the order in which it runs, and the request as it would go upstream.

            URL is http://HOST/PATH or https://HOST/PATH, a path alone, or HOST:PORT for CONNECT. Without --listener a reverse listener that is \
            bound to the URL's port takes the request, else the first reverse one; CONNECT goes to the first forward one. \
            https goes to listeners with tls, http to those without.
            """)

    @Argument(help: "The method, such as GET.")
    var method: String
    @Argument(help: "The URL, or a path.")
    var url: String
    @OptionGroup var file: ConfigurationOption
    @Option(
        name: [.customShort("H"), .customLong("header")], parsing: .singleValue,
        help: "A field, such as 'Accept: text/html'.")
    var headers: [String] = []
    @Option(help: "The listener that receives the request.")
    var listener: String?
    @Option(help: "The client's address.")
    var client = "127.0.0.1"
    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws { _ = try question() }

    func run() throws {
        let result = try file.read()
        for error in result.errors where error.severity == .error { Terminal.error(error.description) }
        guard let configuration = result.configuration else { throw ExitCode(1) }
        let explanation: Explanation
        do {
            explanation = try Explanation(try question(), in: configuration)
        } catch let error as Explanation.NoListener {
            Terminal.error("\(Program.name) explain: \(error)")
            throw ExitCode(64)
        } catch {
            Terminal.error("\(Program.name) explain: \(error)")
            throw ExitCode(3)
        }
        try Terminal.result(json ? ExplanationJson(explanation).text : ExplanationText(explanation).text)
    }

    private func question() throws -> Explanation.Question {
        guard let method = HttpMethod(method) else {
            throw ValidationError("\(method.quotedForErrors) is not a method")
        }
        guard !url.isEmpty, url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw ValidationError("\(url.quotedForErrors) is not a URL; write spaces as %20")
        }
        guard let address = IPAddress(client) else {
            throw ValidationError("\(client.quotedForErrors) is not an IP address")
        }
        var question = Explanation.Question(method, url)
        if let scheme = question.scheme, method == .connect || !["http", "https"].contains(scheme) {
            throw ValidationError(
                method == .connect
                    ? "CONNECT takes HOST:PORT, not a URL"
                    : "\(scheme):// is not supported; write http:// or https://")
        }
        question.listener = listener
        question.client = address
        question.fields = try headers.map { line in
            guard let colon = line.firstIndex(of: ":"), FieldName(String(line[..<colon])) != nil,
                !line.contains(where: \.isNewline)
            else { throw ValidationError("\(line.quotedForErrors) is not a field; write 'Name: value'") }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            return (String(line[..<colon]), String(value))
        }
        return question
    }
}
