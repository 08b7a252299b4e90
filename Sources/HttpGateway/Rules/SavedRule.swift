import Capturing
import HttpWare

/// A rule in the form of entries of a configuration file, with marks for secrets and user information, which are not shown to anybody.
enum SavedRule {
    /// The lists with the entry. Throws if an `if` cannot express the filter.
    static func yaml(_ rule: GatewayRules.Active) throws(FilterFault) -> String {
        let name = rule.rule.ware
        let type = RuleReader.wares.first { $0.name.text == name }
        let options = ConfigNode(.map((rule.rule.options.entries ?? []).filter { $0.key != "on" })).masked
        let reason = Redaction.text(rule.rule.reason)
        var text = "# \(reason.split(whereSeparator: \.isNewline).joined(separator: " "))\n"
        for (list, entries) in [("middlewares", rule.middlewares), ("postwares", rule.postwares)] where !entries.isEmpty
        {
            var condition = ""
            if type is any FilteredWare.Type {
                condition = "    filter: \(Json.text(Redaction.text(rule.rule.filter.text)).text)\n"
            } else if let node = try rule.rule.filter.condition(isPostware: list == "postwares") {
                condition = "    if: \(node.masked.flow)\n"
            }
            text += "\(list):\n  - \(name): \(options.flow)\n\(condition)"
        }
        return text
    }
}
