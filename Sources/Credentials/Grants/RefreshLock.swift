import HttpWare

/// A server that gateways share: it keeps the tokens of credentials, and lets only one gateway refresh at a time.
public protocol CredentialServer: AnyObject, Sendable {
    /// The store for the tokens of this credential, and the lock of its refreshes.
    func share(_ definition: CredentialDefinition) -> (tokens: any TokenStore, lock: any RefreshLock)
    /// Whether the other is the same server, used in the same way.
    func isSame(as other: any CredentialServer) -> Bool
}

/// Lets only one of several gateways refresh at a time. At most one refresh of a credential uses it at a time.
public protocol RefreshLock: Sendable {
    /// Takes the lock if it is free; `nil` while another gateway holds it. Must be called on a loop.
    func tryTake() async throws(CredentialFailure) -> (any RefreshLease)?
    /// The pause between two tries.
    var pause: Duration { get }
}

/// The right to refresh, while it is held.
public protocol RefreshLease: Sendable {
    /// Whether the lease is held, and will be for the duration of one call to the token endpoint. Must be called on a
    /// loop.
    func confirm() async -> Bool
    /// Releases the lease. Must be called once.
    func giveBack() async
}

/// The lock file next to a file of tokens, for the gateways of one machine.
struct FileRefreshLock: RefreshLock {
    let file: TokenFile

    var pause: Duration { .milliseconds(10) }

    func tryTake() async throws(CredentialFailure) -> (any RefreshLease)? {
        let result: Result<Int32?, TokenFile.Fault> = await Task.detached { [file] in
            do throws(TokenFile.Fault) { return .success(try file.tryLock()) } catch { return .failure(error) }
        }.value
        switch result {
        case .success(let descriptor): return descriptor.map { FileLease(file: file, descriptor: $0) }
        case .failure(let fault): throw CredentialFailure(.failed, fault.reason)
        }
    }

    /// A lease that is held until the file is closed or the process ends.
    private struct FileLease: RefreshLease {
        let file: TokenFile
        let descriptor: Int32

        func confirm() -> Bool { true }
        func giveBack() async { await Task.detached { file.unlock(descriptor) }.value }
    }
}
