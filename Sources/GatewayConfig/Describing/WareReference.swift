public import HttpWare

/// The article about the built-in wares, generated from their declarations.
public struct WareReference: Sendable {
    private let wares: [WareDescription]

    /// Describes these wares.
    public init(_ types: [any ConfigurableWare.Type]) {
        wares = WareDescription.all(types)
    }

    /// The whole article, in Markdown.
    public var article: String {
        ([introduction, table] + wares.map(section) + [order]).joined(separator: "\n\n") + "\n"
    }

    /// A table of the wares, in Markdown: name, side, sentence.
    private var table: String {
        (["| ware | side | what it does |", "|---|---|---|"]
            + wares.map { "| `\($0.name)` | \($0.side.rawValue) | \($0.about.sentence) |" }).joined(separator: "\n")
    }

    private var introduction: String {
        """
        # Wares

        The built-in wares in alphabetical order, each with its options and an example.

        <!-- Made by `make reference` from the declarations of the wares; change them there. -->

        ## Overview

        A **middleware** acts on requests and is listed under `middlewares`. A **postware** acts on responses and is listed under `postwares`. A
        **two-sided** ware does both: it is listed once, under `middlewares`, and acts on the response on its way back. Every entry also accepts
        `if`, `as` and `order`, and a route can change its options by `with`. <doc:Configuration> describes these, the types of options
        (byte count, duration, template, …) and the placeholders.

        Unless its section says otherwise, a ware refuses a request with a short `application/problem+json` (RFC 9457). If a ware cannot do its
        work, the exchange fails: with 500, or on the way back with 502. These wares fail open instead, and the exchange continues: \(failingOpen).

        *Framing fields* belong to the gateway itself, and no option can change them: `Content-Length`, `Transfer-Encoding`, `Connection`,
        `Keep-Alive`, `Proxy-Connection`, `TE`, `Upgrade` and `HTTP2-Settings`.

        The examples are chains of a configuration; complete files are in `conf/wares`. `\(ProgramName.text) wares NAME` shows a section in the
        terminal.
        """
    }

    /// The names of the wares that fail open.
    private var failingOpen: String {
        let names = wares.filter(\.failsOpen).map { "`\($0.name)`" }
        return names.dropLast().joined(separator: ", ") + " and " + (names.last ?? "")
    }

    private func section(_ ware: WareDescription) -> String {
        let side =
            switch ware.side {
            case .middleware: "Middleware"
            case .postware: "Postware"
            case .both: "Two-sided"
            case .either: "Middleware or postware"
            }
        let rows = ware.shownOptions.map { option in
            let standard =
                ["required", "none"].contains(option.shownDefault) ? option.shownDefault : "`\(option.shownDefault)`"
            let meaning = option.meaning.replacing("|", with: "\\|")
            return "| `\(option.key)` | \(WareReference.shown(option.type)) | \(standard) | \(meaning) |"
        }
        let source = ware.about.source.isEmpty ? "" : "\n\nSource: \(ware.about.source)."
        let details = ware.about.details.isEmpty ? "" : "\n\n" + ware.about.details
        return """
            ## \(ware.name)

            \(side). \(ware.about.sentence)

            | option | type | default | meaning |
            |---|---|---|---|
            \(rows.joined(separator: "\n"))

            ```yaml
            \(ware.example)
            ```
            """ + details + source
    }

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
