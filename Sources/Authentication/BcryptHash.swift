import CCrypt
import HttpWare

/// The bcrypt hash of a password in the form of htpasswd: `$2y$10$` and 53 characters.
public struct BcryptHash: Sendable {
    let text: String
    /// The binary logarithm of the number of rounds.
    let cost: Int

    /// The accepted costs, up to two seconds of work. With 31, one check would take days.
    static let costs = 4...15

    /// Why a hash is not accepted.
    struct Mistake: Error { let message: String }

    init(_ text: String) throws(Mistake) {
        let parts = text.split(separator: "$", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0].isEmpty, ["2a", "2b", "2y"].contains(parts[1]) else {
            throw Mistake(message: "the hash is not bcrypt's; make one with htpasswd -B")
        }
        guard parts[2].utf8.count == 2, let cost = Int(parts[2]), Self.costs.contains(cost) else {
            throw Mistake(
                message: "the cost of the hash is not \(Self.costs.lowerBound) to \(Self.costs.upperBound)")
        }
        guard parts[3].utf8.count == 53,
            parts[3].utf8.allSatisfy({
                0x2e...0x39 ~= $0 || 0x41...0x5a ~= $0 || 0x61...0x7a ~= $0
            })
        else { throw Mistake(message: "the hash has not the 53 characters of bcrypt's salt and digest") }
        self.text = text
        self.cost = cost
    }

    /// Whether the password matches the hash. Takes from 1 ms to seconds, so it must not be called on a loop. A password with
    /// NUL never matches, because the text after it would be ignored.
    func matches(_ password: [UInt8]) -> Bool {
        guard !password.contains(0) else { return false }
        var made = [UInt8](repeating: 0, count: 61)
        guard ccrypt_hash(password + [0], text, &made, made.count) == 1, made.removeLast() == 0 else { return false }
        return ConstantTime.equal(made, Array(text.utf8))
    }
}
