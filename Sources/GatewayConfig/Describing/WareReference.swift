public import HttpWare

/// The documentation of wares, generated from their declarations: a page for each, and an article that lists them.
///
/// With the other articles of a documentation, each page also names the purposes of its ware, the recipes and articles that
/// use it, and related wares.
public struct WareReference: Sendable {
    /// An article of the documentation, in Markdown.
    public struct Article: Sendable, Equatable {
        /// The name of its file, without the extension.
        public var name: String
        /// The text, which begins with its title.
        public var text: String

        /// Creates an article.
        public init(name: String, text: String) {
            self.name = name
            self.text = text
        }
    }

    private let wares: [WareDescription]
    private let articles: [Article]

    /// Describes these wares. An article named `Wares`, which `files` writes, is not read.
    public init(_ types: [any ConfigurableWare.Type], articles: [Article] = []) {
        wares = WareDescription.all(types)
        self.articles = articles.filter { $0.name != WareReference.indexName }
    }

    /// The name of the article that lists the wares.
    public static let indexName = "Wares"

    /// The name of a ware's page, such as `ware-rateLimit`. No symbol can have it.
    public static func pageName(_ ware: String) -> String { "ware-\(ware)" }

    /// Every file: its path relative to the folder of the documentation, and its text.
    public var files: [(path: String, text: String)] {
        [("\(WareReference.indexName).md", index)]
            + wares.map { ("\(WareReference.indexName)/\(WareReference.pageName($0.name)).md", page($0)) }
    }

    /// The article that lists the wares, in Markdown.
    public var index: String { [introduction, table, order, topics].joined(separator: "\n\n") + "\n" }

    /// The page of a ware, in Markdown; `nil` if there is no ware of this name.
    public func page(of name: String) -> String? { wares.first { $0.name == name }.map(page) }

    /// A table of the wares, in Markdown: name, side, sentence.
    private var table: String {
        (["| ware | side | what it does |", "|---|---|---|"]
            + wares.map { "| \(WareReference.link($0.name)) | \($0.side.rawValue) | \($0.about.sentence) |" })
            .joined(separator: "\n")
    }

    /// The contents for DocC, which lists the pages below this article.
    private var topics: String {
        "## Topics\n\n### A page for each ware\n\n"
            + wares.map { "- <doc:\(WareReference.pageName($0.name))>" }.joined(separator: "\n")
    }

    private static func link(_ ware: String) -> String { "[`\(ware)`](doc:\(pageName(ware)))" }

    private var introduction: String {
        """
        # Wares

        All built-in wares in alphabetical order, each with a page of its own.

        <!-- Made by `make reference` from the declarations of the wares; change them there. -->

        ## Overview

        A **middleware** acts on requests and is listed under `middlewares`. A **postware** acts on responses and is listed under `postwares`. A
        **two-sided** ware does both: it is listed once, under `middlewares`, and acts on the response on its way back. Every entry also accepts
        `if`, `as` and `order`, and a route can change its options by `with`: <doc:ConfigurationChains>. The types of options, such as durations and
        templates, and the placeholders are in <doc:ConfigurationFile>. <doc:WaresByPurpose> leads from a task to its ware.

        Unless its page says otherwise, a ware refuses a request with a short `application/problem+json` (RFC 9457). If a ware cannot do its
        work, the exchange fails: with 500, or on the way back with 502. These wares fail open instead, and the exchange continues: \(failingOpen).

        *Framing fields* belong to the gateway itself, and no option can change them: `Content-Length`, `Transfer-Encoding`, `Connection`,
        `Keep-Alive`, `Proxy-Connection`, `TE`, `Upgrade` and `HTTP2-Settings`.

        Each page has an example, which is a chain of a configuration; complete files are in `conf/wares`. `\(ProgramName.text) wares NAME` shows a
        page in the terminal.
        """
    }

    /// The names of the wares that fail open.
    private var failingOpen: String {
        let names = wares.filter(\.failsOpen).map { "`\($0.name)`" }
        return names.dropLast().joined(separator: ", ") + " and " + (names.last ?? "")
    }

    private func page(_ ware: WareDescription) -> String {
        let uses = WareUses(of: ware.name, among: wares, in: articles)
        let side =
            switch ware.side {
            case .middleware: "A **middleware**: it is listed under `middlewares` and acts on requests."
            case .postware: "A **postware**: it is listed under `postwares` and acts on responses."
            case .both:
                "A **two-sided** ware: it is listed under `middlewares`, and acts on the response on its way back, too."
            case .either:
                "A **middleware or postware**: it acts on requests under `middlewares`, and on responses under `postwares`."
            }
        var parts = [
            "# \(ware.name)", ware.about.sentence,
            "<!-- Made by `make reference` from the declaration of the ware and from the articles; change it there. -->",
            "## Overview", side,
        ]
        if ware.failsOpen { parts.append("If it cannot do its work, the exchange continues without it.") }
        if !uses.purposes.isEmpty {
            let tasks = uses.purposes.map { "\($0.task) (*\($0.heading)*)" }
            parts.append("From <doc:\(WareUses.purposesName)>: " + tasks.joined(separator: "; ") + ".")
        }
        parts.append("```yaml\n\(ware.example)\n```")
        if !ware.about.details.isEmpty { parts.append(ware.about.details) }
        parts += ["## Options", options(of: ware)]
        if !articles.isEmpty { parts += ["## Where it is used", places(of: ware, uses)] }
        if !uses.siblings.isEmpty {
            parts += [
                "## Related wares",
                uses.siblings.map { "- \(WareReference.link($0)): \(sentence(of: $0))" }.joined(separator: "\n"),
            ]
        }
        if !ware.about.source.isEmpty { parts.append("Source: \(ware.about.source).") }
        return parts.joined(separator: "\n\n") + "\n"
    }

    private func options(of ware: WareDescription) -> String {
        let options = ware.shownOptions
        guard !options.isEmpty else { return "It has no options of its own." }
        let rows = options.map { option in
            let standard =
                ["required", "none"].contains(option.shownDefault) ? option.shownDefault : "`\(option.shownDefault)`"
            let meaning = option.meaning.replacing("|", with: "\\|")
            return "| `\(option.key)` | \(WareReference.shown(option.type)) | \(standard) | \(meaning) |"
        }
        return (["| option | type | default | meaning |", "|---|---|---|---|"] + rows).joined(separator: "\n")
    }

    private func places(of ware: WareDescription, _ uses: WareUses) -> String {
        let anchored = uses.recipes.map { recipe in
            "[\(recipe)](doc:\(WareUses.recipesName)#\(recipe.replacing(" ", with: "-").filter { $0.isLetter || $0.isNumber || $0 == "-" }))"
        }
        let lines: [String?] = [
            "A complete file, with cases for `\(ProgramName.text) test`: `conf/wares/\(ware.name).yaml`",
            anchored.isEmpty ? nil : "Recipes: " + anchored.joined(separator: " · "),
            uses.articles.isEmpty
                ? nil : "Articles: " + uses.articles.map { "[\($0.title)](doc:\($0.name))" }.joined(separator: " · "),
        ]
        return lines.compactMap(\.self).map { "- \($0)" }.joined(separator: "\n")
    }

    private func sentence(of ware: String) -> String { wares.first { $0.name == ware }?.about.sentence ?? "" }

    /// The words of an enumeration, formatted as code.
    private static func shown(_ type: String) -> String {
        guard type.contains(" | ") else { return type }
        let prefix = type.hasPrefix("list of ") ? "list of " : ""
        let words = type.dropFirst(prefix.count).split(separator: " | ").map { "`\($0)`" }
        return prefix + words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
    }

    private var order: String {
        """
        ## The order of wares

        Wares run in the order of the file. `check` warns if it differs from the order in which they belong:

        - `middlewares`: \(order(of: "middlewares"))
        - `postwares`: \(order(of: "postwares"))

        Wares with a comma between them have the same place. All other wares can stand anywhere.
        """
    }

    private func order(of list: String) -> String {
        // The place of a ware for both sides refers to postwares.
        let placed = wares.filter { ($0.side == .either ? "postwares" : $0.list) == list }.compactMap { ware in
            ware.place.map { ($0, ware.name) }
        }
        return Dictionary(grouping: placed) { $0.0 }.sorted { $0.key < $1.key }
            .map { _, wares in wares.map { "`\($0.1)`" }.joined(separator: ", ") }.joined(separator: " → ")
    }
}
