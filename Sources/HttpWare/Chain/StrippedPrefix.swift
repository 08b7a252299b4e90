/// The front of the path that a ware removed from a request: references in the response are put back under it.
public final class StrippedPrefix: Sendable, Equatable {
    /// The removed segments, such as `/shop`: begins with a slash, does not end with one.
    public let prefix: String
    /// The segments that were put in their place; empty if there are none.
    public let replacement: String
    /// The path before anything was removed from it.
    public let path: String
    /// The prefix that a trusted proxy in front has removed; empty without one.
    public let outer: String

    /// Makes it from segments that begin with a slash and do not end with one.
    public init(_ prefix: String, replacedBy replacement: String = "", of path: String = "", outer: String = "") {
        self.prefix = prefix
        self.replacement = replacement
        self.path = path
        self.outer = outer
    }

    public static func == (left: StrippedPrefix, right: StrippedPrefix) -> Bool {
        left.prefix == right.prefix && left.replacement == right.replacement && left.path == right.path
            && left.outer == right.outer
    }

    /// The removed front after another ware removed `strip` from `path`. Right when the request is sent again, too: it is found by the
    /// paths, so nothing counts twice.
    public func removing(_ strip: String, from path: String, replacedBy replacement: String) -> StrippedPrefix {
        let before = self.path.hasSuffix(path) ? String(self.path.dropLast(path.count)) : ""
        return StrippedPrefix(before + strip, replacedBy: replacement, of: self.path, outer: outer)
    }

    /// The client's path for a path of the origin server; unchanged if the origin server knows the prefix and added it itself, or if the
    /// path is outside of `replacement`.
    public func reference(_ path: String) -> String {
        if StrippedPrefix.isBelow(path, outer + prefix) || StrippedPrefix.isBelow(path, prefix) { return path }
        guard StrippedPrefix.isBelow(path, replacement) else { return path }
        return prefix + path.dropFirst(replacement.count)
    }

    private static func isBelow(_ path: String, _ prefix: String) -> Bool {
        guard path.hasPrefix(prefix) else { return false }
        guard let next = path.dropFirst(prefix.count).first else { return !prefix.isEmpty }
        return next == "/" || next == "?" || next == "#"
    }
}
