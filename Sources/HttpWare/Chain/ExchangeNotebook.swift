/// What wares remember in an exchange: a page for each key that was ever used in it.
///
/// Pages stay, empty, for the next exchange, so that to remember something allocates nothing once the exchange has been round.
/// They are as many as there are keys in the program.
@usableFromInline
struct ExchangeNotebook {
    private var pages: [ExchangePageOfAny] = []

    @usableFromInline init() {}

    /// The page of that key; `nil` where there is none so far.
    @inlinable
    func page<Key: ExchangeKey>(of key: Key.Type) -> ExchangePage<Key>? {
        // A page of that identity is of that type: a checked cast costs more than all else here.
        find(ObjectIdentifier(key)).map { unsafeDowncast($0, to: ExchangePage<Key>.self) }
    }

    @usableFromInline
    func find(_ key: ObjectIdentifier) -> ExchangePageOfAny? {
        for index in pages.indices where pages[index].key == key { return pages[index] }
        return nil
    }

    /// Adds the first page of its key.
    @inlinable
    mutating func begin<Key: ExchangeKey>(_ key: Key.Type) -> ExchangePage<Key> {
        let page = ExchangePage<Key>()
        add(page)
        return page
    }

    @usableFromInline
    mutating func add(_ page: ExchangePageOfAny) { pages.append(page) }

    /// Forgets what is on the pages.
    func empty() {
        for page in pages where page.isUsed {
            page.isUsed = false
            page.forget(page)
        }
    }
}

/// A page, whatever its key.
@usableFromInline
class ExchangePageOfAny {
    let key: ObjectIdentifier
    /// Something was written since it was empty.
    @usableFromInline var isUsed = false
    /// Empties it. A method would look its type up each time; this was made where the type is known.
    let forget: (ExchangePageOfAny) -> Void

    @usableFromInline
    init(_ key: ObjectIdentifier, forget: @escaping (ExchangePageOfAny) -> Void) {
        self.key = key
        self.forget = forget
    }
}

/// What is remembered under one key.
@usableFromInline
final class ExchangePage<Key: ExchangeKey>: ExchangePageOfAny {
    @usableFromInline var value: Key.Value?

    @inlinable
    init() {
        super.init(ObjectIdentifier(Key.self)) { unsafeDowncast($0, to: ExchangePage<Key>.self).value = nil }
    }
}
