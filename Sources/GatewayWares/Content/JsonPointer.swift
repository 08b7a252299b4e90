public import HttpWare

/// A place in a JSON text: `/user/name`, `/items/0`. RFC 6901.
///
/// In a ware's own options `*` stands for each member of an object, and for each element of an array.
public struct JsonPointer: Sendable, Hashable {
    /// A part of the pointer between two slashes.
    enum Step: Sendable, Hashable {
        case name([UInt8])
        case all
    }

    /// The pointer as written.
    public let text: String
    /// The names, without escapes.
    let names: [[UInt8]]

    /// Reads a pointer; `nil` if the text is invalid. The empty pointer refers to the whole text.
    public init?(_ text: String) {
        guard text.isEmpty || text.utf8.first == 0x2f else { return nil }
        var names: [[UInt8]] = []
        for part in text.utf8.split(separator: 0x2f, omittingEmptySubsequences: false).dropFirst() {
            var name: [UInt8] = []
            var rest = part[...]
            while let byte = rest.popFirst() {
                guard byte == 0x7e else {
                    name.append(byte)
                    continue
                }
                switch rest.popFirst() {
                case 0x30: name.append(0x7e)
                case 0x31: name.append(0x2f)
                default: return nil
                }
            }
            names.append(name)
        }
        guard names.count <= JsonScanner.Rules.exact.depth else { return nil }
        self.text = text
        self.names = names
    }

    /// The steps, with `*` for all members or elements.
    var steps: [Step] { names.map { $0 == [0x2a] ? .all : .name($0) } }
    /// The steps, with `*` as an ordinary name. RFC 6902.
    var literalSteps: [Step] { names.map { .name($0) } }
    var hasStar: Bool { names.contains([0x2a]) }
}

extension JsonPointer: OptionValue {
    public static let optionType = "JSON pointer"
    public static var optionForm: OptionForm { .pattern("(/([^/~]|~[01])*)*") }
    public var optionText: String { text }

    public init(optionText: String) throws(OptionMistake) {
        guard let pointer = JsonPointer(optionText) else {
            throw OptionMistake(
                "write one such as /user/name or /items/*/id; ~1 stands for a slash in a name, ~0 for a tilde")
        }
        self = pointer
    }
}
