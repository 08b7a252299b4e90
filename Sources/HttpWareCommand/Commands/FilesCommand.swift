import ArgumentParser

/// `httpware files DIR`: serves a folder, without a configuration file.
struct FilesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "files",
        abstract: "Serve the files of DIR, without a configuration; one line per request.",
        discussion: """
            Names that begin with a dot, and links that lead out of DIR, answer 404. Each line shows the time, method, target, \
            status, duration and size of a request. On a terminal, the last part is a bar; NO_COLOR turns colours off.
            """)

    @Argument(help: ArgumentHelp("The folder.", valueName: "dir"), completion: .directory)
    var folder = "."
    @Option(help: "The address to listen on; a port alone is on the loopback.")
    var listen = "127.0.0.1:8080"
    @Flag(help: "List folders that have no index.html.")
    var browse = false
    @Flag(help: "Serve names that begin with a dot, too.")
    var hidden = false
    @Option(
        help: ArgumentHelp(
            "Answer with this file of DIR in place of 404: index.html for a single-page app.", valueName: "file"))
    var fallback: String?
    @Flag(help: "Open the admin page on a free port near 9900, and print its URL.")
    var inspect = false
    @Flag(help: "Print JSON, one object per line.")
    var json = false

    func run() throws {
        // A shell has already replaced `~` by the home folder; any other `~` belongs to a name.
        let root = BuiltinConfiguration.quoted(folder.hasPrefix("~") ? "./\(folder)" : folder)
        let last = fallback.map { ", fallback: \(BuiltinConfiguration.quoted($0))" } ?? ""
        try WatchedRun.run(
            """
            version: 1
            listeners: { files: { bind: \(BuiltinConfiguration.quoted(LocalAddress.bind(listen))) } }
            chains:
              files:
                middlewares: [{ files: { root: \(root), browse: \(browse), hidden: \(hidden), cacheControl: no-cache\(last) } }]
            routes: [{ chain: files }]
            """, for: "files", inspects: inspect, json: json)
    }
}
