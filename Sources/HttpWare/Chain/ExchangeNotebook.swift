/// The values of wares in an exchange: one page for each key that was ever used in it.
///
/// Pages stay, empty, for the next exchange, so that storing a value allocates nothing once the pages exist. There are at most as many
/// pages as keys in the program, and they live as long as the notebook.
///
/// Pages are plain memory: as objects, each look would retain and release one, which cost more than everything else here. The
/// owner frees them, once.
@usableFromInline
struct ExchangeNotebook {
    /// The pages with a value in this exchange.
    private var used: UnsafeMutablePointer<ExchangePage>?
    private var empties: UnsafeMutablePointer<ExchangePage>?

    @usableFromInline init() {}

    /// Frees all pages, at the end of the exchange object's life.
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

    /// The value stored under the key in this exchange; `nil` without one.
    @inlinable
    func value<Key: ExchangeKey>(of key: Key.Type) -> Key.Value? {
        // The page of this key was made for this type.
        find(ObjectIdentifier(key))?.assumingMemoryBound(to: Key.Value?.self).pointee
    }

    /// The place of the key's value, for writing.
    @inlinable
    mutating func page<Key: ExchangeKey>(of key: Key.Type) -> UnsafeMutablePointer<Key.Value?> {
        if let value = open(ObjectIdentifier(key)) { return value.assumingMemoryBound(to: Key.Value?.self) }
        let value = UnsafeMutablePointer<Key.Value?>.allocate(capacity: 1)
        value.initialize(to: nil)
        // Made here, where the type is known: code that empties pages would have to look it up.
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

    /// Finds the page among all pages, and marks it as used.
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

    /// Clears the values of all pages.
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
    /// Points to a `Key.Value?`.
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
