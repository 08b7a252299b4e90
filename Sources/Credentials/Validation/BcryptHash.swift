import CCrypt
import HttpWare

/// The bcrypt hash of a password, as htpasswd writes it: `$2y$10$` and 53 characters.
public struct BcryptHash: Sendable {
    let text: String
    /// The logarithm of the work.
    let cost: Int

    /// What is checked: up to two seconds of work; with 31 one check would take days.
    static let costs = 4...15

    /// Why a text is no hash that can be checked here.
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

    /// Whether the password is the one that was hashed. Takes 1 ms to seconds: never on a loop. A password with NUL is none, as
    /// the rest of it would not count.
    func matches(_ password: [UInt8]) -> Bool {
        guard !password.contains(0) else { return false }
        var made = [UInt8](repeating: 0, count: 61)
        guard ccrypt_hash(password + [0], text, &made, made.count) == 1, made.removeLast() == 0 else { return false }
        return ConstantTime.equal(made, Array(text.utf8))
    }
}
