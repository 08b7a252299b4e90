import HttpWare
import Synchronization

/// A place for a credential's tokens between runs of a program: a file, a keychain, memory.
///
/// Called by one refresh at a time, from any thread. Calls may take time.
public protocol TokenStore: Sendable {
    /// The stored tokens; `nil` if there are none.
    func read() async throws -> StoredTokens?
    /// Stores these tokens in place of earlier ones.
    func write(_ tokens: StoredTokens) async throws
    /// Removes the stored tokens.
    func remove() async throws
}

/// Keeps tokens while the program runs: for several credentials that share them, and for tests. Guarded by a mutex.
public final class MemoryTokenStore: TokenStore {
    private let tokens: Mutex<StoredTokens?>

    public init(_ tokens: StoredTokens? = nil) { self.tokens = Mutex(tokens) }

    /// The stored tokens.
    public var stored: StoredTokens? { tokens.withLock { $0 } }

    public func read() -> StoredTokens? { stored }
    public func write(_ tokens: StoredTokens) { self.tokens.withLock { $0 = tokens } }
    public func remove() { tokens.withLock { $0 = nil } }
}

/// Keeps tokens in a file that only its owner can read (0600). The file is replaced in one step, so that a reader sees either
/// the former or the new tokens, complete.
public struct FileTokenStore: TokenStore {
    private let file: TokenFile

    /// The file is created when there are tokens; its folder must exist.
    public init(path: String) { file = TokenFile(path: path) }

    public func read() async throws -> StoredTokens? { try await elsewhere { try $0.read() } }
    public func write(_ tokens: StoredTokens) async throws { try await elsewhere { try $0.write(tokens) } }
    public func remove() async throws { try await elsewhere { $0.remove() } }

    /// Runs outside the loops, because a disk can be slow.
    private func elsewhere<Value: Sendable>(_ body: @escaping @Sendable (TokenFile) throws -> Value) async throws
        -> Value
    {
        let file = self.file
        return try await Task.detached { try body(file) }.value
    }
}
