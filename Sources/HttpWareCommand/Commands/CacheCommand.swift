import ArgumentParser
import HttpWare

/// `httpware cache`: the stored responses of a running gateway.
struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "List, show or purge the stored responses of a running gateway.",
        subcommands: [List.self, Show.self, Purge.self, Stats.self], defaultSubcommand: List.self)

    /// The options of all subcommands.
    struct Common: ParsableArguments {
        @Option(help: "Only this store. Default: all.")
        var store: String?
        @Flag(help: "Print JSON: one line with an object for each store.")
        var json = false
        @OptionGroup var admin: AdminOption
    }

    /// `httpware cache ls`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List stored responses: status, size, age, remaining freshness, tags, key.")

        @Option(help: "Only responses whose key, a URI, begins with this text.")
        var prefix: String?
        @Option(help: "Only responses with this tag.")
        var tag: String?
        @Option(help: "The number of responses to list for each store, 1 to 1000.")
        var limit = 100
        @OptionGroup var common: Common

        func validate() throws {
            if !(1...1000).contains(limit) { throw ValidationError("--limit is 1 to 1000") }
        }

        func run() throws {
            let query = AdminQuery([("limit", String(limit)), ("prefix", prefix), ("tag", tag)])
            let lists = try CacheCommand.ask(common) { try $0.get("/v1/cache/\($1)/entries\(query.text)") }
            if common.json { return }
            let shown = try lists.map { try $0.decoded(CacheList.self) }
            for line in TextTable.lines(CacheList.rows(shown)) { try Terminal.result(line) }
            for list in shown where list.more {
                Terminal.error(
                    TerminalStyle.plain.shown(
                        "\(list.store) has more responses; use --prefix or --tag, or raise --limit"))
            }
        }
    }

    /// `httpware cache show KEY`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show the responses stored under a key, with their fields.")

        @Argument(help: "The key, a URI, as \(Program.name) cache ls shows it.")
        var key: String
        @OptionGroup var common: Common

        func run() throws {
            let query = AdminQuery([("key", key)])
            let answers = try CacheCommand.ask(common, orNothing: true) {
                try $0.get("/v1/cache/\($1)/entry\(query.text)")
            }
            guard !answers.isEmpty else {
                Terminal.error(
                    "nothing is stored under \(TerminalStyle.plain.shown(key)); \(Program.name) cache ls lists the keys"
                )
                throw ExitCode(1)
            }
            if common.json { return }
            for answer in answers {
                for line in try answer.decoded(CacheEntry.self).lines { try Terminal.result(line) }
            }
        }
    }

    /// `httpware cache purge`.
    struct Purge: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "purge",
            abstract: "Remove stored responses: by key, by prefix, by tag, or all.")

        @Argument(help: "The key, a URI, as \(Program.name) cache ls shows it.")
        var key: String?
        @Option(help: "Responses whose key, a URI, begins with this text.")
        var prefix: String?
        @Option(help: "Responses with this tag.")
        var tag: String?
        @Flag(help: "All responses.")
        var all = false
        @OptionGroup var common: Common

        func validate() throws {
            let isNamed = key != nil || prefix != nil || tag != nil
            if all == isNamed {
                throw ValidationError(
                    all
                        ? "--all cannot be combined with a key, --prefix or --tag"
                        : "say what to remove: a key, --prefix, --tag or --all")
            }
            if prefix == "" || key == "" {
                throw ValidationError("an empty text would mean everything; write --all for that")
            }
        }

        func run() throws {
            let query = AdminQuery([("key", key), ("prefix", all ? "" : prefix), ("tag", tag)])
            struct Purged: Decodable {
                let store: String
                let purged: Int
            }
            try CacheCommand.ask(common, { try $0.post("/v1/cache/\($1)/purge\(query.text)") }) { answer in
                if common.json { return }
                let one = try answer.decoded(Purged.self)
                let count = one.purged == 1 ? "1 response" : "\(one.purged) responses"
                try Terminal.result(TerminalStyle.plain.shown("\(one.store): \(count) purged"))
            }
        }
    }

    /// `httpware cache stats`.
    struct Stats: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "stats", abstract: "Show the stores, and the results of caches for each route.")

        @OptionGroup var view: AdminView

        func run() throws { try view.show("/v1/cache", as: CacheOverview.self) { $0.lines } }
    }

    /// Sends a request for each chosen store and returns the answers. With `orNothing`, a store that answers 404 is left out.
    private static func ask(
        _ common: Common, orNothing: Bool = false,
        _ body: (AdminClient, _ store: String) throws -> AdminClient.Answer
    ) throws -> [AdminClient.Answer] {
        var answers: [AdminClient.Answer] = []
        try ask(common, orNothing: orNothing, body) { answers.append($0) }
        return answers
    }

    /// Sends a request for each chosen store and passes each answer to `take` at once. If an answer is invalid, the program
    /// ends after the last store.
    private static func ask(
        _ common: Common, orNothing: Bool = false,
        _ body: (AdminClient, _ store: String) throws -> AdminClient.Answer,
        take: (AdminClient.Answer) throws -> Void
    ) throws {
        let client = try common.admin.client()
        let known = try client.get("/v1/cache").decoded(CacheOverview.self).stores.map(\.name)
        if let store = common.store, !known.contains(store) {
            let names = known.joined(separator: ", ")
            Terminal.error(TerminalStyle.plain.shown("the gateway has no store \(store); it has \(names)"))
            throw ExitCode(1)
        }
        var failure: (any Error)?
        for store in known where store == common.store ?? store {
            let answer = try body(client, store)
            if orNothing, answer.status == 404 { continue }
            do {
                // With --json too, which prints a valid answer unchanged.
                _ = try answer.decoded(StoreName.self)
            } catch {
                failure = error
                continue
            }
            if common.json { try Terminal.result(answer.text, end: "") }
            try take(answer)
        }
        if let failure { throw failure }
    }

    private struct StoreName: Decodable {
        let store: String
    }
}
