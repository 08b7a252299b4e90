internal import HttpWare

extension ResponseDirectives {
    /// The directives of a targeted field. `nil` if its lines are empty or not a structured dictionary, or if they exceed a limit
    /// of `StructuredReader`; the field is then ignored. RFC 9213 §2.1.
    init?(targeted lines: [String]) {
        let text = Array(lines.joined(separator: ", ").utf8)
        guard let members = try? StructuredReader.dictionary(text, for: .directives), !members.isEmpty else {
            return nil
        }
        self.init()
        for (name, member) in members { takeDirective(CacheDirective(name, member)) }
    }
}

extension CacheDirective {
    /// A member of a targeted field; its parameters are ignored. A value of the wrong type counts as malformed, as in
    /// `Cache-Control`. `false` means that the directive is absent.
    fileprivate init(_ key: String, _ member: StructuredMember) {
        switch member {
        case .item(.boolean(true), _): self.init(name: key, argument: nil, isWellFormed: true)
        case .item(.boolean(false), _): self.init(name: "", argument: nil, isWellFormed: true)
        case .item(.integer(let number), _): self.init(name: key, argument: "\(number)", isWellFormed: true)
        case .item(.string(let text), _) where key == "no-cache" || key == "private":
            self.init(name: key, argument: text, isWellFormed: true)
        case .item, .list: self.init(name: key, argument: nil, isWellFormed: false)
        }
    }
}
