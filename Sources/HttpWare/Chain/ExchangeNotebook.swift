/// What wares remember in an exchange: a page for each key that was ever used in it.
///
/// Pages stay, empty, for the next exchange, so that to remember something allocates nothing once the exchange has been round.
/// They are as many as there are keys in the program, and live as long as the notebook.
///
/// They are plain memory: as objects each look at one retained and released it, which cost more than all else here. Its owner frees
/// them, once.
@usableFromInline
struct ExchangeNotebook {
    /// Those with something on them in this exchange.
    private var used: UnsafeMutablePointer<ExchangePage>?
    private var empties: UnsafeMutablePointer<ExchangePage>?

    @usableFromInline init() {}

    /// Lets go of all, at the end of the exchange's life.
    func free() {
        ExchangeNotebook.free(used)
        ExchangeNotebook.free(empties)
    }

    private static func free(_ first: UnsafeMutablePointer<ExchangePage>?) {
        var next = first
        while let page = next {
            next = page.pointee.next
            page.pointee.free(page.pointee.value)
            page.deinitialize(count: 1)
            page.deallocate()
        }
    }

    /// What was written under that key in this exchange, if anything.
    @inlinable
    func value<Key: ExchangeKey>(of key: Key.Type) -> Key.Value? {
        // The page of that identity was made for that type.
        find(ObjectIdentifier(key))?.assumingMemoryBound(to: Key.Value?.self).pointee
    }

    /// Where the key's value stands, to be written.
    @inlinable
    mutating func page<Key: ExchangeKey>(of key: Key.Type) -> UnsafeMutablePointer<Key.Value?> {
        if let value = open(ObjectIdentifier(key)) { return value.assumingMemoryBound(to: Key.Value?.self) }
        let value = UnsafeMutablePointer<Key.Value?>.allocate(capacity: 1)
        value.initialize(to: nil)
        // Made where the type is known: who empties pages would have to look it up.
        add(
            ExchangePage(
                key: ObjectIdentifier(key), value: UnsafeMutableRawPointer(value),
                forget: { $0.assumingMemoryBound(to: Key.Value?.self).pointee = nil },
                free: {
                    $0.assumingMemoryBound(to: Key.Value?.self).deinitialize(count: 1)
                    $0.deallocate()
                }))
        return value
    }

    @usableFromInline
    func find(_ key: ObjectIdentifier) -> UnsafeMutableRawPointer? {
        var next = used
        while let page = next {
            if page.pointee.key == key { return page.pointee.value }
            next = page.pointee.next
        }
        return nil
    }

    /// Finds the page among all, and notes that it is in use.
    @usableFromInline
    mutating func open(_ key: ObjectIdentifier) -> UnsafeMutableRawPointer? {
        if let value = find(key) { return value }
        var previous: UnsafeMutablePointer<ExchangePage>?
        var next = empties
        while let page = next {
            next = page.pointee.next
            if page.pointee.key == key {
                if let previous { previous.pointee.next = next } else { empties = next }
                page.pointee.next = used
                used = page
                return page.pointee.value
            }
            previous = page
        }
        return nil
    }

    @usableFromInline
    mutating func add(_ page: consuming ExchangePage) {
        let place = UnsafeMutablePointer<ExchangePage>.allocate(capacity: 1)
        page.next = used
        place.initialize(to: page)
        used = place
    }

    /// Forgets what is on the pages.
    mutating func empty() {
        while let page = used {
            used = page.pointee.next
            page.pointee.next = empties
            empties = page
            page.pointee.forget(page.pointee.value)
        }
    }
}

/// The place of one key's value.
@usableFromInline
struct ExchangePage {
    let key: ObjectIdentifier
    /// A `Key.Value?`.
    let value: UnsafeMutableRawPointer
    let forget: (UnsafeMutableRawPointer) -> Void
    let free: (UnsafeMutableRawPointer) -> Void
    var next: UnsafeMutablePointer<ExchangePage>?

    @usableFromInline
    init(
        key: ObjectIdentifier, value: UnsafeMutableRawPointer, forget: @escaping (UnsafeMutableRawPointer) -> Void,
        free: @escaping (UnsafeMutableRawPointer) -> Void
    ) {
        self.key = key
        self.value = value
        self.forget = forget
        self.free = free
    }
}
