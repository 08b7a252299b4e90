import HttpWare

/// A server that gateways share: it keeps the tokens of credentials, and lets one gateway refresh them at a time.
public protocol CredentialServer: AnyObject, Sendable {
    /// Where the tokens of this credential are kept, and the lock of its refreshes.
    func share(_ definition: CredentialDefinition) -> (tokens: any TokenStore, lock: any RefreshLock)
    /// Whether the other one is the same server, and used in the same way.
    func isSame(as other: any CredentialServer) -> Bool
}

/// Lets one of several gateways refresh at a time. Used by one refresh of a credential at a time.
public protocol RefreshLock: Sendable {
    /// Takes it, if it is free; `nil` while another gateway has it. On a loop.
    func tryTake() async throws(CredentialFailure) -> (any RefreshLease)?
    /// How long to wait between two tries.
    var pause: Duration { get }
}

/// The right to refresh, while it is held.
public protocol RefreshLease: Sendable {
    /// Whether it is held, and will be for as long as one call to the token endpoint takes. On a loop.
    func confirm() async -> Bool
    /// Gives it back. To be called once.
    func giveBack() async
}

/// The lock beside a file of tokens, for the gateways of one machine.
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

    /// Held until it is closed, or the process ends.
    private struct FileLease: RefreshLease {
        let file: TokenFile
        let descriptor: Int32

        func confirm() -> Bool { true }
        func giveBack() async { await Task.detached { file.unlock(descriptor) }.value }
    }
}
