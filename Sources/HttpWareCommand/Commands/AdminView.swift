import ArgumentParser

/// What a command shows that asks the admin listener once: as JSON, or by its own words.
struct AdminView: ParsableArguments {
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var admin: AdminOption

    /// Prints what the listener answers for a path: as it is, where JSON is wanted; else the lines that `body` makes of it. Ends
    /// the program where it is no such answer.
    func show<Answer: Decodable>(_ path: String, as type: Answer.Type, _ body: (Answer) -> [String]) throws {
        let answer = try admin.client().get(path)
        let read = try answer.decoded(type)
        if json { return try Terminal.result(answer.text, end: "") }
        for line in body(read) { try Terminal.result(line) }
    }
}
