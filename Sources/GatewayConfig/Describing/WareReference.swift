public import HttpWare

/// The article about the built-in wares, made from what the wares say of themselves.
public struct WareReference: Sendable {
    private let wares: [WareDescription]
    private let registry: WareRegistry

    /// Describes these wares.
    public init(_ types: [any ConfigurableWare.Type]) {
        wares = WareDescription.all(types)
        registry = WareRegistry(types)
    }

    /// The whole article, in Markdown.
    public var article: String {
        ([introduction] + wares.map(section) + [notBuilt]).joined(separator: "\n\n") + "\n"
    }

    /// The rows of a table: name, side, sentence.
    public var rows: [String] {
        wares.map { "| `\($0.name)` | \($0.side.rawValue) | \($0.about.sentence) |" }
    }

    private let introduction = """
        # Wares

        The built-in wares, in alphabetical order: what each does, its options, an example.

        <!-- Made by `make reference` from what the wares declare; change it there. -->

        ## Overview

        *Side* says where a ware is listed. A **middleware** acts on requests and is listed under `middlewares`. A **postware** acts on
        responses and is listed under `postwares`. A **two-sided** ware does both, is listed once, under `middlewares`, and acts on the response
        on the way back. Every entry also takes `if`, `as` and `order`, and routes can change its options by `with`: see <doc:Configuration>,
        where the types of options (byte count, duration, template, …) and the placeholders are described too.

        A refusal by a ware is a short `application/problem+json` (RFC 9457), unless its section says otherwise. Wares fail closed: where one
        cannot do its work, the request is refused (500, on the way back 502). `accessLog`, `timeLog` and the wares that cache fail open.

        *Framing fields* belong to the gateway, and wares cannot change them: `Content-Length`, `Transfer-Encoding`, `Connection`,
        `Keep-Alive`, `Proxy-Connection`, `TE`, `Upgrade`, `HTTP2-Settings`.

        The examples are the chains of a configuration; whole files are in `conf/wares`. `httpware wares NAME` shows a section in the
        terminal.
        """

    private func section(_ ware: WareDescription) -> String {
        let side =
            switch ware.side {
            case .middleware: "Middleware"
            case .postware: "Postware"
            case .both: "Two-sided"
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
            ## `\(ware.name)`

            \(side). \(ware.about.sentence)

            | option | type | default | meaning |
            |---|---|---|---|
            \(rows.joined(separator: "\n"))

            ```yaml
            \(ware.example)
            ```
            """ + details + source
    }

    /// The words of an enumeration as code.
    private static func shown(_ type: String) -> String {
        guard type.contains(" | ") else { return type }
        let prefix = type.hasPrefix("list of ") ? "list of " : ""
        let words = type.dropFirst(prefix.count).split(separator: " | ").map { "`\($0)`" }
        return prefix + words.dropLast().joined(separator: ", ") + " or " + (words.last ?? "")
    }

    private var notBuilt: String {
        """
        ## Not built yet

        A file that names one of these is told *is not supported yet*: \(registry.notBuilt.map { "`\($0)`" }.joined(separator: ", ")).
        """
    }
}
