internal import HttpWare
internal import RawStructuredFieldValues

extension ResponseDirectives {
    /// The directives of a targeted field. If its lines are not a structured dictionary, or an empty one, it is `nil`: the field
    /// is ignored. RFC 9213 §2.1.
    init?(targeted lines: [String]) {
        var parser = StructuredFieldValueParser(Array(lines.joined(separator: ", ").utf8))
        guard let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty else { return nil }
        self.init()
        for (name, member) in members { takeDirective(CacheDirective(name, member)) }
    }
}

extension CacheDirective {
    /// A member of a targeted field, parameters ignored. A value of a type that the directive does not have is as ill-formed
    /// as one in `Cache-Control` would be; `false` is the directive's absence written out.
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
