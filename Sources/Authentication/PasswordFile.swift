/// Users and the bcrypt hashes of their passwords: an htpasswd file.
public struct PasswordFile: Sendable {
    private var users: [String: BcryptHash] = [:]
    /// The hash that takes longest to check. It is checked for unknown users.
    private var dearest: BcryptHash?

    public var count: Int { users.count }

    /// A file without users.
    public init() {}

    /// Reads a file. Errors are added to `mistakes`; lines without an error are read.
    public init(_ file: [UInt8], mistakes: inout [FileMistake]) {
        let lines = NamedLines(file, form: "user:hash")
        mistakes += lines.mistakes
        var places: [String: Int] = [:]
        for line in lines.lines {
            func mistake(_ message: String) {
                mistakes.append(FileMistake(line: line.number, column: line.column, message: message))
            }
            if let other = places.updateValue(line.number, forKey: line.name) {
                mistake("the user is already in line \(other)")
                continue
            }
            do {
                let hash = try BcryptHash(line.value)
                users[line.name] = hash
                if hash.cost > dearest?.cost ?? 0 { dearest = hash }
            } catch {
                mistake(error.message)
            }
        }
        if users.isEmpty, mistakes.isEmpty {
            mistakes.append(FileMistake(line: 1, column: 1, message: "the file contains no user"))
        }
    }

    /// Whether the password is that of the user. The check takes as long for an unknown user. Must not be called on a
    /// loop.
    public func accepts(_ user: String, _ password: [UInt8]) -> Bool {
        let known = users[user]
        guard let hash = known ?? dearest else { return false }
        return hash.matches(password) && known != nil
    }
}
