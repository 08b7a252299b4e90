public import HttpWare
import Synchronization

/// Tries orders at the authority's staging directory. A trial is a whole order with the same settings and the same listeners; its
/// certificate is dropped. The staging directory has an account of its own, so nothing of the real authority is used or replaced.
///
/// A mutex guards the trials; the work consists of tasks of a loop.
final class CertificateTrials: Sendable {
    private let issuer: AcmeIssuer
    private let answerer: @Sendable (EventLoop) -> any ChallengeAnswerer
    /// Keeps the locks of the real orders, which have to wait for a trial of the same name: both use the same challenges.
    private let storage: any AcmeStorage
    private let state = Mutex(State())

    private struct State {
        var results: [String: CertificateKeeper.Trial] = [:]
        var tasks: [String: Task<Void, Never>] = [:]
        var isStopped = false
    }

    /// The pause between two tries to get the lock, and the number of tries.
    private static let lockPause = Duration.seconds(1)
    private static let lockTries = 60

    init(
        _ issuer: AcmeIssuer, locks storage: any AcmeStorage,
        answerer: @escaping @Sendable (EventLoop) -> any ChallengeAnswerer
    ) {
        self.issuer = issuer
        self.storage = storage
        self.answerer = answerer
    }

    /// Requests the staging directory.
    func check(on loop: EventLoop) async throws(AcmeFailure) -> AcmeIssuer.Features { try await issuer.check(on: loop) }

    /// The last trial of a name; `nil` if there was none.
    func last(of name: String) -> CertificateKeeper.Trial? { state.withLock { $0.results[name] } }

    /// Begins a trial, unless one of the name is under way.
    func begin(_ name: String, on loop: EventLoop) {
        state.withLock { state in
            guard !state.isStopped, state.tasks[name] == nil else { return }
            state.results[name] = .underWay
            state.tasks[name] = Task(executorPreference: loop) {
                let result = await self.attempt(name, on: loop)
                self.state.withLock { state in
                    state.results[name] = result
                    state.tasks[name] = nil
                }
            }
        }
    }

    /// Abandons the trials that are under way, and begins no other.
    func stop() {
        let tasks = state.withLock { state in
            state.isStopped = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
    }

    private func attempt(_ name: String, on loop: EventLoop) async -> CertificateKeeper.Trial {
        do throws(AcmeFailure) {
            let lock = try await lock(name, on: loop)
            do throws(AcmeFailure) {
                _ = try await issuer.issue(name, replacing: nil, answering: answerer(loop), on: loop)
                await lock.release()
            } catch {
                await lock.release()
                throw error
            }
            WareLog.shared.log(.notice, "acme: \(name): the trial at \(issuer.settings.directory) succeeded")
            return .passed(at: loop.wallNow())
        } catch {
            guard !Task.isCancelled else { return .failed(error.reason, at: loop.wallNow()) }
            WareLog.shared.log(
                .warning, "acme: \(name): the trial at \(issuer.settings.directory) failed: \(error.reason)")
            return .failed(error.reason, at: loop.wallNow())
        }
    }

    private func lock(_ name: String, on loop: EventLoop) async throws(AcmeFailure) -> any AcmeLock {
        for _ in 0..<CertificateTrials.lockTries {
            if let lock = try await storage.tryLock(name) { return lock }
            do { try await loop.sleep(for: CertificateTrials.lockPause) } catch {
                throw AcmeFailure(.unreachable, "the trial was stopped")
            }
        }
        throw AcmeFailure(.unkept, "a certificate for \(name) is being ordered; try again when that has ended")
    }
}

extension CertificateKeeper {
    /// An order at the staging directory.
    public enum Trial: Sendable, Equatable {
        case underWay
        case passed(at: WallTime)
        /// Why the order failed.
        case failed(String, at: WallTime)
    }

    /// The answer of an authority's directory.
    public struct Authority: Sendable {
        /// The URL of the directory.
        public let directory: String
        /// The names of the profiles; empty if the authority has none.
        public let profiles: [String]
        /// Whether the authority suggests renewal times. RFC 9773.
        public let hasRenewalInfo: Bool
        /// Why the authority cannot be used with these settings; `nil` if it can.
        public let failure: AcmeFailure?
    }
}
