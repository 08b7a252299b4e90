import ArgumentParser
import HttpWare

/// `httpware page`: a URL that opens the inspector page of a running gateway, without its token.
struct PageCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "page", abstract: "Print a URL that opens the inspector page of a running gateway.",
        discussion: """
            The URL ends in a code that begins one session, within a minute. The browser keeps the session for this page alone, until \
            it was not used for twelve hours or the gateway ends.
            """)

    @OptionGroup var admin: AdminOption

    private struct Code: Decodable {
        let code: String?
    }

    func run() throws {
        let client = try admin.client()
        guard case .ip = client.address else {
            Terminal.error("a browser cannot open the page on a Unix socket; bind the admin listener to 127.0.0.1:9900")
            throw ExitCode(1)
        }
        let code = try client.send(.post, "/v1/session/code").decoded(Code.self).code
        Terminal.print("http://\(client.address)/" + (code.map { "#open=\($0)" } ?? ""))
    }
}
