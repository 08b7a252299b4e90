import HttpWare
import Synchronization

/// Where a credential's tokens are kept between runs of a program: a file, a keychain, memory.
///
/// Called by one refresh at a time, from any thread; it may wait.
public protocol TokenStore: Sendable {
    /// What is kept; `nil` where there is nothing.
    func read() async throws -> StoredTokens?
    /// Keeps these in place of what there was.
    func write(_ tokens: StoredTokens) async throws
    /// Forgets what there was.
    func remove() async throws
}

/// Keeps tokens as long as the program runs: for several credentials that share them, and for tests. Guarded by a mutex.
public final class MemoryTokenStore: TokenStore {
    private let tokens: Mutex<StoredTokens?>

    public init(_ tokens: StoredTokens? = nil) { self.tokens = Mutex(tokens) }

    /// What is kept.
    public var stored: StoredTokens? { tokens.withLock { $0 } }

    public func read() -> StoredTokens? { stored }
    public func write(_ tokens: StoredTokens) { self.tokens.withLock { $0 = tokens } }
    public func remove() { tokens.withLock { $0 = nil } }
}

/// Keeps tokens in a file that only its owner can read (0600), replaced in one step: whoever reads sees the former tokens or the
/// new ones, whole.
public struct FileTokenStore: TokenStore {
    private let file: TokenFile

    /// The file is made when there are tokens; its folder has to be there.
    public init(path: String) { file = TokenFile(path: path) }

    public func read() async throws -> StoredTokens? { try await elsewhere { try $0.read() } }
    public func write(_ tokens: StoredTokens) async throws { try await elsewhere { try $0.write(tokens) } }
    public func remove() async throws { try await elsewhere { $0.remove() } }

    /// Away from the loops, as a disk may take its time.
    private func elsewhere<Value: Sendable>(_ body: @escaping @Sendable (TokenFile) throws -> Value) async throws
        -> Value
    {
        let file = self.file
        return try await Task.detached { try body(file) }.value
    }
}
