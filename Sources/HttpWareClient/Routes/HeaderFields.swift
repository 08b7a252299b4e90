/// The fields of a request as written in a route. `nil` values are left out, and all values are checked when the
/// request is made.
///
/// ```swift
/// var headers: HeaderFields { ["Accept-Language": language, "If-Match": etag] }   // nil: not sent
/// ```
public struct HeaderFields: Sendable {
    private(set) var items: [(name: String, value: String)] = []

    /// No fields.
    public init() {}

    /// Fields from a dictionary, ordered by name.
    public init(_ values: [String: String]) {
        for (name, value) in values.sorted(by: { $0 < $1 }) { append(name, value) }
    }

    /// Adds a field line. A `nil` value adds nothing.
    public mutating func append(_ name: String, _ value: String?) {
        if let value { items.append((name, value)) }
    }

    /// The value of the first line of that name. Setting it replaces all lines of that name; `nil` removes them.
    public subscript(name: String) -> String? {
        get { items.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            items.removeAll { $0.name.lowercased() == name.lowercased() }
            append(name, newValue)
        }
    }

    /// Sets the lines in a message, replacing its fields with the same names. Throws if a name or a value is invalid. Throws too
    /// for a field that is derived from the request, such as `Host` and the fields that frame a message.
    func apply(to fields: inout HttpFields) throws(HttpError) {
        var seen: Set<FieldName> = []
        for (text, value) in items {
            guard let name = FieldName(text) else {
                throw HttpError(.client, .invalidRequest, .making, "\(text.debugDescription) is not a field name")
            }
            guard !name.isGatewayOwned, name != .host else {
                throw HttpError(
                    .client, .invalidRequest, .making, "\(name) is set from the request itself; remove it")
            }
            if seen.insert(name).inserted { fields.remove(name) }
            do {
                try fields.append(name, value)
            } catch {
                throw HttpError(.client, .invalidRequest, .making, "\(error)", underlying: error)
            }
        }
    }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, String?)...) {
        for (name, value) in elements { append(name, value) }
    }
}

extension HttpResponse {
    /// A response whose fields have values that are not literals, for tests and wares. Throws if a name or a value is invalid.
    @_disfavoredOverload
    public init(_ status: HttpStatus, fields: HeaderFields, content: HttpContent = .none) throws(HttpError) {
        self.init(status, content: content)
        try fields.apply(to: &self.fields)
    }
}
