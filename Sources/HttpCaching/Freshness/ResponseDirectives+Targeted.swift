internal import HttpWare
internal import RawStructuredFieldValues

extension ResponseDirectives {
    /// The directives of a targeted field. `nil` if its lines are empty or not a structured dictionary; the field is then
    /// ignored. RFC 9213 §2.1.
    init?(targeted lines: [String]) {
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ").utf8))
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        self.init()
        for (name, member) in members { takeDirective(CacheDirective(name, member)) }
    }
}

extension CacheDirective {
    /// A member of a targeted field; its parameters are ignored. A value of the wrong type counts as malformed, as in
    /// `Cache-Control`. `false` means that the directive is absent.
    fileprivate init(_ key: String, _ member: ItemOrInnerList) {
        guard case .item(let item) = member else {
            self.init(name: key, argument: nil, isWellFormed: false)
            return
        }
        switch item.rfc9651BareItem {
        case .bool(true): self.init(name: key, argument: nil, isWellFormed: true)
        case .bool(false): self.init(name: "", argument: nil, isWellFormed: true)
        case .integer(let number): self.init(name: key, argument: "\(number)", isWellFormed: true)
        case .string(let text) where key == "no-cache" || key == "private":
            self.init(name: key, argument: text, isWellFormed: true)
        default: self.init(name: key, argument: nil, isWellFormed: false)
        }
    }
}
