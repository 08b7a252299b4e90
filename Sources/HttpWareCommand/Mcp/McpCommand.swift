import ArgumentParser
import GatewayConfig
import Glibc
import HttpWare

/// `httpware mcp`: the tools of a running gateway for an assistant, over standard input and output.
struct McpCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mcp", abstract: "Serve the captures of a running gateway to an assistant by MCP.",
        discussion: """
            Speaks the Model Context Protocol on standard input and output. An assistant starts this command; it asks the admin \
            listener of the gateway: list and read captured requests, compare two of them, export HAR, explain a URL, check a \
            configuration.

            It reads only. With --allow-changes, an assistant can also send captured requests again, and add and remove rules. \
            Credentials are masked as everywhere else.
            """)

    @Flag(help: "Offer tools that send requests and change rules.")
    var allowChanges = false
    @OptionGroup var admin: AdminOption

    func run() throws {
        let option = admin
        // An inspector's token is made at each start, so its file is read again for each client.
        let tools = McpTools(allowsChanges: allowChanges) { try option.client() }
        var server = McpServer(tools)
        var lines = McpLines()
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            for line in lines.add(buffer[..<count]) {
                if let answer = server.answer(line) { try Terminal.result(answer) }
            }
        }
    }
}

/// Splits input into lines. A line that is too long is discarded.
struct McpLines {
    /// The longest line, in bytes.
    static let longest = 4 << 20
    private var line: [UInt8] = []
    private var isTooLong = false

    /// The lines that these bytes complete; `nil` stands for a line that is too long.
    mutating func add(_ bytes: some Collection<UInt8>) -> [[UInt8]?] {
        var lines: [[UInt8]?] = []
        for byte in bytes {
            if byte != 0x0a {
                if line.count < McpLines.longest { line.append(byte) } else { isTooLong = true }
                continue
            }
            lines.append(isTooLong ? nil : line)
            line = []
            isTooLong = false
        }
        return lines
    }
}
