/// A place in a configuration file, for errors and for `explain`.
public struct SourceLocation: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The file as the user named it: relative to the working directory if it was given so; `-` is standard input.
    public var file: String
    /// The line, counted from 1; 0 if the value was not read from a file.
    public var line: Int
    /// The column in characters, counted from 1.
    public var column: Int

    /// Makes a place from its parts.
    public init(file: String, line: Int, column: Int) {
        self.file = file
        self.line = line
        self.column = column
    }

    /// The place of values that were written in code.
    public static let code = SourceLocation(file: "options", line: 0, column: 0)

    /// The place as text: `conf/httpware.yaml:14:12`.
    public var description: String {
        line == 0 ? file : "\(file):\(line):\(column)"
    }

    public static func < (left: SourceLocation, right: SourceLocation) -> Bool {
        (left.file, left.line, left.column) < (right.file, right.line, right.column)
    }
}
