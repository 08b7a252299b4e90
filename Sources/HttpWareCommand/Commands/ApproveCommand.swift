import ArgumentParser
import HttpWare

/// `httpware approve`: the questions that the ware `ask` has for a person, and their answers.
struct ApproveCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "approve", abstract: "Answer the questions of a running gateway about requests that wait.",
        discussion: """
            An answer counts for requests of the same client with the same method, URL, content and fields that matter; about a host, for all \
            requests to it. Exit status: 1 if the question is not open, or the answer is not allowed.
            """,
        subcommands: [List.self, Show.self, Yes.self, No.self, Remove.self], defaultSubcommand: List.self)

    private struct Question: Decodable {
        struct Field: Decodable {
            let name: String
            let value: String
        }

        struct Content: Decodable {
            let size: Int
            let whole: Bool
            let text: String?
        }

        let id: String
        let scope: String
        let who: String
        let method: String
        let url: String
        let host: String
        let hash: String
        let rule: String
        let capture: String?
        let since: String
        let until: String
        let answers: [String]
        let waiting: Int
        let hiddenHeaders: Int
        let headers: [Field]
        let content: Content

        /// The subject of the question.
        var what: String { scope == "host" ? host : "\(method) \(url)" }
    }

    private struct Approval: Decodable {
        let id: String
        let answer: String
        let who: String
        let what: String
        let `for`: String
        let at: String
    }

    /// `httpware approve ls`.
    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "ls", abstract: "List the open questions, and the answers that count for later requests.")
        @OptionGroup var view: AdminView

        private struct Questions: Decodable { let questions: [Question] }
        private struct Approvals: Decodable { let approvals: [Approval] }

        func run() throws {
            let client = try view.admin.client()
            let (open, kept) = (try client.get("/v1/questions"), try client.get("/v1/approvals"))
            let (questions, approvals) = (
                try open.decoded(Questions.self).questions, try kept.decoded(Approvals.self).approvals
            )
            if view.json {
                return try Terminal.result("{\"open\":\(open.text),\"kept\":\(kept.text)}".filter { !$0.isNewline })
            }
            let rows = questions.map { one in
                [one.id, String(one.waiting), one.who, one.since, one.until, one.what].map(TerminalStyle.plain.shown)
            }
            for line in TextTable.lines([["ID", "WAITING", "WHO", "SINCE", "UNTIL", "REQUEST"]] + rows) {
                try Terminal.result(line)
            }
            if approvals.isEmpty { return }
            try Terminal.result("")
            let answers = approvals.map { one in
                [one.id, one.answer, one.for, one.who, one.at, one.what].map(TerminalStyle.plain.shown)
            }
            for line in TextTable.lines([["HASH", "ANSWER", "FOR", "WHO", "AT", "REQUEST"]] + answers) {
                try Terminal.result(line)
            }
        }
    }

    /// `httpware approve show ID`.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "show", abstract: "Show the request that a question is about.")
        @Argument(help: "The question, as \(Program.name) approve ls shows it.")
        var id: Int
        @OptionGroup var view: AdminView

        func run() throws {
            try view.show("/v1/questions/\(id)", as: Question.self) { one in
                var lines = ["\(one.method) \(one.url)"]
                lines += one.headers.map { "\($0.name): \($0.value)" }
                if one.hiddenHeaders > 0 { lines.append("… \(one.hiddenHeaders) more fields are not shown") }
                if one.content.size > 0 || !one.content.whole {
                    lines += ["", one.content.text ?? "\(one.content.size) bytes that are not text"]
                    if !one.content.whole { lines += ["", "More content follows, which is not known yet."] }
                }
                lines += [
                    "", "from \(one.who), at \(one.rule), since \(one.since), until \(one.until)",
                    "an answer can count for: \(one.answers.joined(separator: ", "))", "hash: \(one.hash)",
                ]
                return lines.map(TerminalStyle.plain.shown)
            }
        }
    }

    /// The arguments of `yes` and `no`.
    struct Answering: ParsableArguments {
        @Argument(help: "The question, as \(Program.name) approve ls shows it.")
        var id: Int
        @Option(
            name: .customLong("for"),
            help: ArgumentHelp(
                """
                How long the answer counts: once, run (until the gateway ends), always (until it is taken back), or a duration such as 10m. \
                Default: as the file says, else once.
                """, valueName: "span"))
        var span: String?
        @Flag(help: "Print JSON.")
        var json = false
        @OptionGroup var admin: AdminOption

        private struct Done: Decodable {
            let id: String
            let answer: String
            let `for`: String
        }

        fileprivate func answer(_ word: String) throws {
            let content = Json.object(given: [("answer", .text(word)), ("for", span.map(Json.text))])
            let answer = try admin.client().send(.post, "/v1/questions/\(id)/answer", json: content.text)
            let done = try answer.decoded(Done.self)
            if json { return try Terminal.result(answer.text, end: "") }
            try Terminal.result(TerminalStyle.plain.shown("\(done.id): \(done.answer), for \(done.for)"))
        }
    }

    /// `httpware approve yes ID`.
    struct Yes: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "yes", abstract: "Let the requests that wait go on.")
        @OptionGroup var answering: Answering

        func run() throws { try answering.answer("yes") }
    }

    /// `httpware approve no ID`.
    struct No: ParsableCommand {
        static let configuration = CommandConfiguration(commandName: "no", abstract: "Refuse the requests that wait.")
        @OptionGroup var answering: Answering

        func run() throws { try answering.answer("no") }
    }

    /// `httpware approve rm HASH`.
    struct Remove: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "rm", abstract: "Take an answer back, so that later requests are asked about again.")
        @Argument(help: "The answer's hash, as \(Program.name) approve ls shows it: at least eight digits.")
        var hash: String
        @Flag(help: "Print JSON.")
        var json = false
        @OptionGroup var admin: AdminOption

        private struct Done: Decodable { let removed: Int }

        func validate() throws {
            guard (8...64).contains(hash.utf8.count), hash.allSatisfy({ $0.isHexDigit && $0.isASCII }) else {
                throw ValidationError("\(hash) is not a hash; write at least eight hexadecimal digits")
            }
        }

        func run() throws {
            let answer = try admin.client().send(.delete, "/v1/approvals/\(hash.lowercased())")
            let done = try answer.decoded(Done.self)
            if json { return try Terminal.result(answer.text, end: "") }
            try Terminal.result("\(done.removed) taken back")
        }
    }
}
