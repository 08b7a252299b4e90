import Synchronization

/// The values that wares of all loops keep for one service: one note for each type.
///
/// It lives as long as the service, also across reloads that leave the service's definition unchanged. Notes are never removed;
/// there is at most one for each note type of the program. Lookups need no lock.
public final class ServiceNotes: Sendable {
    /// The service's name in the configuration.
    public let name: String
    /// The service stands for every origin that clients ask for; these have nothing in common.
    public let isPassthrough: Bool
    /// The names of the service's origin server; `nil` if clients choose it.
    let origin: OriginNames?

    /// Whether the service can be reached.
    public let reachability = ServiceReachability()
    /// The number of recent requests, each counted once even if it was sent several times. The driver counts them.
    public let requests = SecondCounts()

    /// The first page; retained until `deinit`.
    private let first = Atomic<Unmanaged<Page>?>(nil)

    public convenience init(name: String, isPassthrough: Bool = false) {
        self.init(name: name, isPassthrough: isPassthrough, origin: nil)
    }

    init(name: String, isPassthrough: Bool, origin: OriginNames?) {
        self.origin = origin
        self.name = name
        self.isPassthrough = isPassthrough
    }

    /// A note and the link to the next page. Immutable except for the link, which is set once.
    private final class Page: Sendable {
        let key: ObjectIdentifier
        let note: any AnyObject & Sendable
        let next = Atomic<Unmanaged<Page>?>(nil)

        init(_ key: ObjectIdentifier, _ note: any AnyObject & Sendable) {
            self.key = key
            self.note = note
        }
    }

    /// The note of that type, created on first use. Safe to call from any thread.
    public func note<Note: ServiceNote>(_ type: Note.Type) -> Note { place(of: type).takeUnretainedValue() }

    /// A reference to the note of that type, valid while this object lives; created on first use. Safe to call from any thread.
    @inlinable
    func place<Note: ServiceNote>(of type: Note.Type) -> Unmanaged<Note> {
        let place = find(ObjectIdentifier(type)) ?? add(ObjectIdentifier(type), Note())
        // The key guarantees the type: a checked cast would cost more than everything else here.
        return place._withUnsafeGuaranteedRef { Unmanaged.passUnretained(unsafeDowncast($0, to: Note.self)) }
    }

    /// The note of that type; `nil` if none was created yet. Safe to call from any thread.
    public func noteIfMade<Note: ServiceNote>(_ type: Note.Type) -> Note? {
        find(ObjectIdentifier(type))?.takeUnretainedValue() as? Note
    }

    @usableFromInline
    func find(_ key: ObjectIdentifier) -> Unmanaged<AnyObject>? {
        var page = first.load(ordering: .acquiring)
        while let found = page {
            // Pages are not retained here: they live as long as this object.
            if found._withUnsafeGuaranteedRef({ $0.key == key }) {
                return found._withUnsafeGuaranteedRef { Unmanaged.passUnretained($0.note) }
            }
            page = found._withUnsafeGuaranteedRef { $0.next.load(ordering: .acquiring) }
        }
        return nil
    }

    /// Adds a note. If another thread was faster, its note is used.
    @usableFromInline
    func add(_ key: ObjectIdentifier, _ note: any AnyObject & Sendable) -> Unmanaged<AnyObject> {
        let made = Unmanaged.passRetained(Page(key, note))  // released below, or by deinit
        var (isAdded, other) = first.compareExchange(
            expected: nil, desired: made, ordering: .acquiringAndReleasing)
        while !isAdded, let page = other?.takeUnretainedValue() {
            if page.key == key {
                made.release()
                return Unmanaged.passUnretained(page.note)
            }
            (isAdded, other) = page.next.compareExchange(
                expected: nil, desired: made, ordering: .acquiringAndReleasing)
        }
        return Unmanaged.passUnretained(note)
    }

    deinit {
        var page = first.load(ordering: .acquiring)
        while let found = page {
            page = found.takeUnretainedValue().next.load(ordering: .acquiring)
            found.release()  // retained by add(_:_:)
        }
    }
}

/// A value that wares keep for a service. All loops share it, so it must guard itself.
public protocol ServiceNote: AnyObject, Sendable {
    init()
}
