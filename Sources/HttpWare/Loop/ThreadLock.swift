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
    @usableFromInline let storage: LockedStorage<Value>

    /// Puts a value behind a lock.
    @inlinable public init(_ value: sending Value) {
        let value = value
        storage = LockedElement.make(1) { value }
    }

    /// Lends the value. The closure is short, and takes no other lock.
    @inlinable public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        defer { withExtendedLifetime(storage) {} }
        return try LockedElement.withLock(storage.withUnsafeMutablePointerToElements { $0 }, body)
    }
}

/// Values that threads share, each behind a lock of its own, so that they seldom wait for each other: what there is by key is spread
/// over them.
///
/// Like so many `ThreadLock`s, but to reach one of them counts no reference to it, which all threads would do at the same place.
// @unchecked Sendable: each value is touched only between lock and unlock of the mutex beside it, which stands in the same storage. Of
// the storage itself nothing changes after `init`, and it outlives the unlocking.
public struct ThreadLocks<Value>: @unchecked Sendable {
    @usableFromInline let storage: LockedStorage<Value>

    /// Puts `count` values behind locks, at least one.
    public init(_ count: Int, _ value: () -> Value) { storage = LockedElement.make(max(1, count), value) }

    public var count: Int { storage.header }

    /// Lends the value of a place, which is taken modulo their number. The closure is short, and takes no other lock.
    @inlinable public func withLock<Result, Failure: Error>(
        of place: Int, _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        defer { withExtendedLifetime(storage) {} }
        let element = storage.withUnsafeMutablePointers { count, elements in
            elements + Int(UInt(bitPattern: place) % UInt(count.pointee))
        }
        return try LockedElement.withLock(element, body)
    }
}

/// How many there are, and behind that the values with their mutexes, which must not move.
@usableFromInline typealias LockedStorage<Value> = ManagedBuffer<Int, LockedElement<Value>>

@usableFromInline
struct LockedElement<Value> {
    /// Stands first, for it is reached by the element's address: threads that wait for it do not have the element.
    private var mutex = pthread_mutex_t()
    @usableFromInline var value: Value

    @usableFromInline init(value: Value) { self.value = value }

    @usableFromInline static func make(_ count: Int, _ value: () -> Value) -> LockedStorage<Value> {
        let storage = LockedElements<Value>.create(minimumCapacity: count) { _ in count }
        storage.withUnsafeMutablePointerToElements { elements in
            for element in elements..<elements + count {
                element.initialize(to: LockedElement(value: value()))
                let code = pthread_mutex_init(mutex(of: element), nil)
                precondition(code == 0)  // glibc's never fails without attributes
            }
        }
        return storage
    }

    @inlinable static func mutex(of element: UnsafeMutablePointer<Self>) -> UnsafeMutablePointer<pthread_mutex_t> {
        UnsafeMutableRawPointer(element).assumingMemoryBound(to: pthread_mutex_t.self)
    }

    /// Whoever calls it keeps the storage alive until it answers, whoever lets go of it meanwhile.
    @inlinable static func withLock<Result, Failure: Error>(
        _ element: UnsafeMutablePointer<Self>, _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        let mutex = mutex(of: element)
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&element.pointee.value)
    }
}

private final class LockedElements<Value>: ManagedBuffer<Int, LockedElement<Value>> {
    deinit {
        withUnsafeMutablePointers { count, elements in
            for element in elements..<elements + count.pointee {
                pthread_mutex_destroy(LockedElement.mutex(of: element))
            }
            elements.deinitialize(count: count.pointee)
        }
    }
}
