import ArgumentParser

/// The output of a command that asks the admin listener once: JSON, or its own text.
struct AdminView: ParsableArguments {
    @Flag(help: "Print JSON.")
    var json = false
    @OptionGroup var admin: AdminOption

    /// Prints the listener's answer for a path: unchanged with --json, otherwise as the lines that `body` returns. If the
    /// answer is invalid, the program ends.
    func show<Answer: Decodable>(_ path: String, as type: Answer.Type, _ body: (Answer) -> [String]) throws {
        let answer = try admin.client().get(path)
        let read = try answer.decoded(type)
        if json { return try Terminal.result(answer.text, end: "") }
        for line in body(read) { try Terminal.result(line) }
    }
}
