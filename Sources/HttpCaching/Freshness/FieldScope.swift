public import HttpWare

/// The scope of `no-cache` and `private`: nothing, the whole response, or some of its fields. RFC 9111 §5.2.2.4,
/// §5.2.2.7.
public enum FieldScope: Sendable, Equatable {
    case nothing
    case response
    case fields([FieldName])

    /// Widens the scope by a directive. An invalid argument widens it to the whole response.
    mutating func add(_ directive: CacheDirective) {
        guard directive.isWellFormed, let argument = directive.argument else {
            self = .response
            return
        }
        let names = argument.split(separator: ",").map { $0.trimmed }.filter { !$0.isEmpty }.map { FieldName($0) }
        guard !names.isEmpty, !names.contains(where: { $0 == nil }) else {
            self = .response
            return
        }
        switch self {
        case .response: break
        case .nothing: self = .fields(names.compactMap(\.self))
        case .fields(let others): self = .fields(others + names.compactMap(\.self))
        }
    }
}

extension Substring {
    /// The text without white space at both ends.
    fileprivate var trimmed: String {
        var text = self
        while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
        while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
        return String(text)
    }
}
