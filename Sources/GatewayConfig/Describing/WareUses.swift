import HttpWare

/// The places in a documentation that name a ware: its purposes, the recipes and articles with it, and the wares that do related work.
///
/// Everything is found in the text of the articles, so that no list has to be kept beside them.
struct WareUses {
    /// A row of the article about purposes that names the ware.
    struct Purpose: Equatable {
        /// The heading above the row.
        var heading: String
        /// The first cell of the row.
        var task: String
    }

    /// The name of the article whose tables lead from tasks to wares.
    static let purposesName = "WaresByPurpose"
    /// The name of the article whose sections are whole configurations.
    static let recipesName = "Recipes"
    /// Articles about every ware, or about none.
    private static let indexes: Set = [purposesName, "Wares", "HttpGateway", "Architecture", "Measured"]

    private(set) var purposes: [Purpose] = []
    /// Other wares below the same headings of the article about purposes, in its order.
    private(set) var siblings: [String] = []
    /// The titles of the recipes with the ware in their configuration.
    private(set) var recipes: [String] = []
    /// Other articles with the ware in a configuration, or that speak about it.
    private(set) var articles: [WareReference.Article] = []

    /// Looks for one of the wares in the articles.
    init(of name: String, among wares: [WareDescription], in articles: [WareReference.Article]) {
        let names = Set(wares.map(\.name))
        let isOption = wares.contains {
            $0.options.contains { $0.key.split(separator: ".").last.map(String.init) == name }
        }
        for article in articles.sorted(by: { $0.name < $1.name }) {
            if article.name == WareUses.purposesName {
                readPurposes(of: name, among: names, in: article)
            } else if article.name == WareUses.recipesName {
                recipes = article.sections.filter { WareUses.isListed(name, in: $0.lines) }.map(\.heading)
            } else if !WareUses.indexes.contains(article.name), WareUses.speaks(article, of: name, isOption: isOption) {
                self.articles.append(article)
            }
        }
    }

    // MARK: Purposes

    private mutating func readPurposes(of name: String, among names: Set<String>, in article: WareReference.Article) {
        for section in article.sections {
            let rows = section.lines.filter { $0.hasPrefix("|") }.map { WareUses.cells(of: $0) }.filter {
                $0.count >= 2
            }
            let own = rows.filter { WareUses.spans(in: $0[1]).contains(name) }
            guard !own.isEmpty else { continue }
            purposes += own.map { Purpose(heading: section.heading, task: $0[0]) }
            for other in rows.flatMap({ WareUses.spans(in: $0[1]) })
            where names.contains(other) && other != name && !siblings.contains(other) {
                siblings.append(other)
            }
        }
    }

    private static func cells(of row: Substring) -> [String] {
        row.split(separator: "|").map { $0.trimmed }.filter { !$0.isEmpty }
    }

    /// The texts in single backticks.
    private static func spans(in text: some StringProtocol) -> [String] {
        text.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }

    // MARK: Mentions

    /// Whether a configuration of the article lists the ware, or its prose names it: a name such as `rateLimit` once; a name
    /// such as `files`, which other things have too, three times; and a name such as `timeout`, which options have, four times.
    private static func speaks(_ article: WareReference.Article, of name: String, isOption: Bool) -> Bool {
        let lines = article.text.split(separator: "\n", omittingEmptySubsequences: false)
        if isListed(name, in: lines) { return true }
        let isOwnWord = name.contains { $0.isUppercase }
        var isCode = false
        var count = 0
        for line in lines {
            if line.hasPrefix("```") { isCode.toggle() }
            if !isCode { count += spans(in: line).count { $0 == name } }
        }
        return count >= (isOwnWord ? 1 : isOption ? 4 : 3)
    }

    /// Whether code in these lines has the ware in a list of wares, in block form or in flow form.
    private static func isListed(_ name: String, in lines: [Substring]) -> Bool {
        var isCode = false
        /// The open brackets of a list in flow form, from the one behind `middlewares:` on.
        var open: [Character] = []
        for line in lines {
            if line.hasPrefix("```") {
                isCode = line.hasPrefix("```yaml") && !isCode
                open = []
            } else if isCode {
                let code = line.firstRange(of: " #").map { line[..<$0.lowerBound] } ?? line
                let item = code.drop { $0 == " " }
                if item.hasPrefix("- "), isEntry(name, at: item.dropFirst(2)) { return true }
                if hasFlow(name, in: code, &open) { return true }
            }
        }
        return false
    }

    private static func hasFlow(_ name: String, in line: Substring, _ open: inout [Character]) -> Bool {
        var rest = line
        while !rest.isEmpty {
            if open.isEmpty {
                guard let start = rest.firstRange(of: "wares: [") else { return false }
                rest = rest[start.upperBound...]
                open = ["["]
                if isEntry(name, at: rest) { return true }
            }
            guard let sign = rest.popFirst() else { return false }
            switch sign {
            case "[", "{": open.append(sign)
            case "]", "}": open.removeLast()
            case "," where open.count == 1: if isEntry(name, at: rest) { return true }
            default: break
            }
        }
        return false
    }

    /// Whether an entry of a list begins with this name: alone, or as the key of a map.
    private static func isEntry(_ name: String, at text: Substring) -> Bool {
        var text = text.drop { $0 == " " }
        if text.first == "{" { text = text.dropFirst().drop { $0 == " " } }
        guard text.hasPrefix(name) else { return false }
        return text.dropFirst(name.count).first.map { ": ,]}".contains($0) } ?? true
    }
}

extension WareReference.Article {
    /// The parts below the headings of the second level. A line of code is not a heading.
    var sections: [(heading: String, lines: [Substring])] {
        var found: [(heading: String, lines: [Substring])] = []
        var isCode = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") { isCode.toggle() }
            if !isCode, line.hasPrefix("## ") {
                found.append((String(line.dropFirst(3)), []))
            } else if !found.isEmpty {
                found[found.count - 1].lines.append(line)
            }
        }
        return found
    }

    /// The title: the first line, without its sign.
    var title: String { String(text.prefix { $0 != "\n" }.drop { $0 == "#" || $0 == " " }) }
}

extension Substring {
    /// Without spaces at both ends.
    fileprivate var trimmed: String {
        var text = drop { $0 == " " }
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
