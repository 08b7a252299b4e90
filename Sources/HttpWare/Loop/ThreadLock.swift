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

/// Values that threads share, each behind a lock of its own, so that they seldom wait for each other: what there is by key is spread
/// over them.
///
/// Like so many `ThreadLock`s, but to reach one of them counts no reference to it, which all threads would do at the same place.
// @unchecked Sendable: an element's value is touched only between lock and unlock of the mutex beside it.
public struct ThreadLocks<Value>: @unchecked Sendable {
    @usableFromInline let storage: ManagedBuffer<Int, LockedElement<Value>>

    /// Puts `count` values behind locks, at least one.
    public init(_ count: Int, _ value: () -> Value) {
        let count = max(1, count)
        storage = LockedElements<Value>.create(minimumCapacity: count) { _ in count }
        storage.withUnsafeMutablePointerToElements { elements in
            for index in 0..<count {
                (elements + index).initialize(to: LockedElement(value: value()))
                let code = pthread_mutex_init(LockedElement.mutex(of: elements + index), nil)
                precondition(code == 0)  // glibc's never fails without attributes
            }
        }
    }

    public var count: Int { storage.header }

    /// Lends the value of a place, which is taken modulo their number. The closure is short, and takes no other lock.
    @inlinable public func withLock<Result, Failure: Error>(
        of place: Int, _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        defer { withExtendedLifetime(storage) {} }
        let element = storage.withUnsafeMutablePointers { count, elements in
            elements + Int(UInt(bitPattern: place) % UInt(count.pointee))
        }
        let mutex = LockedElement.mutex(of: element)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&element.pointee.value)
    }
}

@usableFromInline
struct LockedElement<Value> {
    /// Stands first, for it is reached by the element's address: threads that wait for it do not have the element.
    private var mutex = pthread_mutex_t()
    @usableFromInline var value: Value

    init(value: Value) { self.value = value }

    @inlinable static func mutex(of element: UnsafeMutablePointer<Self>) -> UnsafeMutablePointer<pthread_mutex_t> {
        UnsafeMutableRawPointer(element).assumingMemoryBound(to: pthread_mutex_t.self)
    }
}

@usableFromInline
final class LockedElements<Value>: ManagedBuffer<Int, LockedElement<Value>> {
    deinit {
        withUnsafeMutablePointers { count, elements in
            for index in 0..<count.pointee { pthread_mutex_destroy(LockedElement.mutex(of: elements + index)) }
            elements.deinitialize(count: count.pointee)
        }
    }
}
