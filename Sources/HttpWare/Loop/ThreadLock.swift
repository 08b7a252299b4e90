public import Glibc

/// A value that threads share, behind a `pthread` mutex.
///
/// Usually a `Mutex` is enough. Where work passes from thread to thread, and in the client, the thread sanitizer must see
/// the order. It knows `pthread` mutexes, but does not recognise Swift's (6.3, Linux) as locks, so it would
/// report everything that is handed over.
///
/// Inlined, so that it is specialised for the value's type: every lookup of a store uses it.
// @unchecked Sendable: the storage is used only between lock and unlock of the mutex that it contains.
public struct ThreadLock<Value>: @unchecked Sendable {
    @usableFromInline let storage: LockedStorage<Value>

    /// Stores a value behind a lock.
    @inlinable public init(_ value: sending Value) {
        let value = value
        storage = LockedElement.make(1) { value }
    }

    /// Passes the value. The closure must be short, and take no other lock.
    @inlinable public func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        defer { withExtendedLifetime(storage) {} }
        return try LockedElement.withLock(storage.withUnsafeMutablePointerToElements { $0 }, body)
    }
}

/// Values that threads share, each behind its own lock, so that threads rarely wait for each other: data is distributed over them
/// by key.
///
/// Equivalent to several `ThreadLock`s, but reaching one counts no reference, which all threads would do in the same place.
// @unchecked Sendable: each value is used only between lock and unlock of its own mutex, which is in the same storage.
// The storage itself does not change after `init`, and it outlives the unlocking.
public struct ThreadLocks<Value>: @unchecked Sendable {
    @usableFromInline let storage: LockedStorage<Value>

    /// Stores `count` values behind locks, at least one.
    public init(_ count: Int, _ value: () -> Value) { storage = LockedElement.make(max(1, count), value) }

    public var count: Int { storage.header }

    /// Passes the value at a place, taken modulo the count. The closure must be short, and take no other lock.
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

/// The count, followed by the values with their mutexes, which must not move.
@usableFromInline typealias LockedStorage<Value> = ManagedBuffer<Int, LockedElement<Value>>

@usableFromInline
struct LockedElement<Value> {
    /// Comes first, because it is reached by the element's address: waiting threads do not hold the element.
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

    /// Callers retain the storage until this returns, even if other references are released meanwhile.
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
