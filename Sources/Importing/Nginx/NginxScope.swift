import HttpWare

/// The directives that are in force at a place of a file of nginx: those of each level, from `http` inwards.
///
/// Most directives are inherited as a whole: a level that has one hides all of the outer levels.
struct NginxScope: Sendable {
    private var levels: [[String: [NginxDirective]]] = []

    /// The scope inside a block with these directives.
    func entering(_ directives: [NginxDirective]) -> NginxScope {
        var scope = self
        var level: [String: [NginxDirective]] = [:]
        for directive in directives { level[directive.name, default: []].append(directive) }
        scope.levels.append(level)
        return scope
    }

    /// All directives of the name at the innermost level that has one; empty without one.
    func all(_ name: String) -> [NginxDirective] {
        for level in levels.reversed() {
            if let found = level[name] { return found }
        }
        return []
    }

    /// Directives that replace each other as one group, at the innermost level that has one of them, in file order.
    func group(_ names: [String]) -> [NginxDirective] {
        for level in levels.reversed() {
            let found = names.flatMap { level[$0] ?? [] }
            if !found.isEmpty { return found.sorted { $0.order < $1.order } }
        }
        return []
    }

    /// The directive that is in force; `nil` without one.
    func last(_ name: String) -> NginxDirective? { all(name).last }

    /// The first word of the directive that is in force.
    func word(_ name: String) -> String? { last(name)?.first }

    /// Whether the directive is `on`; `nil` without one.
    func flag(_ name: String) -> Bool? { word(name).map { $0 == "on" } }

    /// The names of all directives, from the outermost level on.
    var names: [String] { levels.flatMap { $0.keys.sorted() } }

    /// Whether the innermost level has the directive.
    func isOwn(_ name: String) -> Bool { levels.last?[name] != nil }
}
