public import HttpWare

/// The keys that clients may use, by their digests: a file of lines `name:sha256-in-hex`, with comments after `#`. The file
/// does not contain the keys themselves.
///
/// A key must be long and random, because a fast digest without a salt does not protect a key that can be guessed.
public struct KeyList: Sendable {
    private struct Key {
        let digest: Digest256
        let principal: Principal
    }

    /// The keys by the first byte of their digests.
    private var keys: [[Key]] = Array(repeating: [], count: 256)
    public private(set) var count = 0

    /// A list without keys.
    public init() {}

    /// Reads a file. Errors are added to `mistakes`; lines without an error are read.
    public init(_ file: [UInt8], mistakes: inout [FileMistake]) {
        let lines = NamedLines(file, form: "name:sha256-in-hex")
        mistakes += lines.mistakes
        var seen: [Digest256: Int] = [:]
        for line in lines.lines {
            func mistake(_ message: String) {
                mistakes.append(FileMistake(line: line.number, column: line.column, message: message))
            }
            // A digest contains no `#`, so that a comment begins there.
            let value = line.value.utf8.prefix { $0 != 0x23 }
            let digits = value.prefix(value.count - value.reversed().prefix { $0 == 0x20 || $0 == 0x09 }.count)
            guard let digest = Digest256(hex: digits) else {
                mistake("the text after the name is not a SHA-256 digest of 64 hexadecimal digits")
                continue
            }
            if let other = seen.updateValue(line.number, forKey: digest) {
                mistake("the key is already in line \(other)")
                continue
            }
            keys[digest.firstByte].append(
                Key(digest: digest, principal: Principal(method: "apiKey", name: line.name)))
            count += 1
        }
        if count == 0, mistakes.isEmpty {
            mistakes.append(FileMistake(line: 1, column: 1, message: "the file contains no key"))
        }
    }

    /// The owner of the key; `nil` if the key is unknown. Digests are compared in constant time, with all candidates that
    /// have the same first byte.
    public func owner(of key: UnsafeRawBufferPointer) -> Principal? {
        let digest = Digest256(of: key)
        var owner: Principal?
        for candidate in keys[digest.firstByte] where candidate.digest == digest { owner = candidate.principal }
        return owner
    }
}
