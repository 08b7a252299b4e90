public import Glibc

/// A value that threads share, behind a `pthread` mutex.
///
/// Mostly that is a `Mutex`. Where work goes from thread to thread, and in the client, the thread sanitizer must see
/// the order: it knows the mutexes of `pthread`, while Swift's (6.3, Linux) look to it like no lock at all, so that it would
/// report whatever is handed over.
///
/// Inlined where it is used, which makes it for the type of the value there: it stands in every look-up of a store.
// @unchecked Sendable: what the storage holds is touched only between lock and unlock of the mutex that it holds, too.
public struct ThreadLock<Value>: @unchecked Sendable {
    @usableFromInline let storage: ManagedBuffer<Value, pthread_mutex_t>

    /// Puts a value behind a lock.
    @inlinable public init(_ value: sending Value) {
        let value = value
        storage = LockedValue<Value>.create(minimumCapacity: 1) {
            let code = $0.withUnsafeMutablePointerToElements { pthread_mutex_init($0, nil) }
            precondition(code == 0)  // glibc's never fails without attributes
            return value
        }
    }

    /// Lends the value. The closure is short, and takes no other lock.
    @inlinable public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        // The pointers are good as long as the storage, which so outlives the unlocking, whoever lets go of the lock meanwhile.
        defer { withExtendedLifetime(storage) {} }
        let (value, mutex) = storage.withUnsafeMutablePointers { ($0, $1) }
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}

/// The value, and behind it in the same piece of memory the mutex, which must not move.
@usableFromInline
final class LockedValue<Value>: ManagedBuffer<Value, pthread_mutex_t> {
    deinit { _ = withUnsafeMutablePointerToElements { pthread_mutex_destroy($0) } }
}
