import HttpWare

/// The destination of a route: a path relative to the service's base URL. It is written as a string whose interpolated
/// values are encoded.
///
/// ```swift
/// var path: RoutePath { "/users/\(id)/notes/\(title)" }
/// ```
///
/// An interpolated value becomes one segment, whatever it contains: `a/b` is sent as `a%2Fb`. A value that cannot be
/// one segment makes the path invalid, and the request is refused when it is created. Such values are the empty one,
/// `.` and `..`, which would name another resource. RFC 3986 §3.3, §5.2.4.
public struct RoutePath: Sendable, Hashable {
    /// The path as sent: percent-encoded, beginning with a slash; or an absolute URI.
    public private(set) var text: String
    /// Why the path is invalid; `nil` if it is valid.
    public private(set) var fault: String?

    /// A path that is already encoded, such as one from a server; or an absolute `http` or `https` URI.
    public init(encoded text: String) {
        self.text = BaseUrl.withLowercaseScheme(text)
        check()
    }

    /// Whether it is an absolute URI, which replaces the service's base URL.
    public var isAbsolute: Bool { text.hasPrefix("http://") || text.hasPrefix("https://") }

    private mutating func check() {
        guard fault == nil else { return }
        if !isAbsolute, !text.hasPrefix("/"), !text.isEmpty { text = "/" + text }
        if text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f || $0 == 0x23 }) {
            fault = "the path contains a space, a control character or a fragment"
        }
    }
}

extension RoutePath: ExpressibleByStringInterpolation {
    public init(stringLiteral value: String) { self.init(encoded: value) }

    public init(stringInterpolation: Segments) {
        text = stringInterpolation.text
        fault = stringInterpolation.fault
        check()
        guard fault == nil, !stringInterpolation.values.isEmpty else { return }
        // An interpolated value must not remove its segment together with the text around it.
        let path = text.prefix { $0 != "?" }
        for segment in path.split(separator: "/", omittingEmptySubsequences: false)
        where segment == "." || segment == ".." {
            fault = "a value makes the path segment \"\(segment)\", which names another resource"
        }
    }

    /// Builds a path from literal and interpolated parts.
    public struct Segments: StringInterpolationProtocol {
        var text = ""
        var fault: String?
        var values: [String] = []

        public init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity + 16) }

        public mutating func appendLiteral(_ literal: String) { text += literal }

        /// One segment, or a part of one.
        public mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            let description = value.description
            values.append(description)
            // Behind `?` an empty value names no other resource.
            if description.isEmpty, !text.utf8.contains(0x3f) { fault = "a value in the path is empty" }
            text += PercentText.text(description)
        }

        /// One segment, or a part of one, from the raw value of a case.
        public mutating func appendInterpolation<Value: RawRepresentable>(_ value: Value)
        where Value.RawValue: CustomStringConvertible {
            appendInterpolation(value.rawValue)
        }

        /// One segment, or a part of one, for a type that has both a raw value and a description.
        public mutating func appendInterpolation<Value: RawRepresentable & CustomStringConvertible>(_ value: Value)
        where Value.RawValue: CustomStringConvertible {
            appendInterpolation(value.rawValue)
        }

        /// Several segments, with slashes between them.
        public mutating func appendInterpolation(segments: some Sequence<String>) {
            var isFirst = true
            for segment in segments {
                if !isFirst { text += "/" }
                isFirst = false
                appendInterpolation(segment)
            }
            if isFirst { fault = "a value in the path is empty" }
        }

        /// Text that is already encoded.
        public mutating func appendInterpolation(encoded: String) {
            values.append(encoded)
            text += encoded
        }
    }
}

extension RoutePath: CustomStringConvertible {
    public var description: String { text }
}
