import HttpWare

/// What is doubtful about the options of one entry, by the name of its ware.
///
/// The wares themselves refuse what is wrong; these rules are about what is right and risky.
struct EntryRules {
    private struct Rule {
        let ware: String
        let option: String
        /// Why a member of the option's value is doubtful.
        let doubt: @Sendable (ConfigNode) -> String?
    }

    private static let rules = [
        Rule(ware: "retry", option: "methods") { node in
            guard let text = node.text, let method = HttpMethod(text), !method.isIdempotent else { return nil }
            return "\(text.quotedForErrors) is not idempotent: a second attempt may do the work twice (RFC 9110 §9.2.2)"
        }
    ]

    private(set) var diagnostics = Diagnostics()

    /// Judges an entry as it was written, or as a route's `with` has it.
    mutating func check(_ entry: WrittenEntry) {
        for rule in Self.rules where rule.ware == entry.name {
            for member in entry.options[rule.option]?.members ?? [] {
                if let doubt = rule.doubt(member) {
                    diagnostics.warning(at: member.location, "\(entry.name).\(rule.option)", doubt)
                }
            }
        }
    }
}
