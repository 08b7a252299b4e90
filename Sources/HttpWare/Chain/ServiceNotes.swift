import Synchronization

/// What the wares of all loops remember of one service: one note for each type that was ever asked for.
///
/// It lives as long as the service, over reloads that leave the service's definition as it is. Notes are never taken away; they are as
/// many as there are types of them in the program. They are found without a lock.
public final class ServiceNotes: Sendable {
    /// The service's name in the configuration.
    public let name: String
    /// It stands for every origin that clients ask for, which have nothing in common.
    public let isPassthrough: Bool
    /// The names of its origin server; `nil` where clients choose it.
    let origin: OriginNames?

    /// Whether it can be reached.
    public let reachability = ServiceReachability()
    /// How many requests it was asked for lately, each once however often it was sent. Counted by the driver.
    public let requests = SecondCounts()

    /// Held until this goes.
    private let first = Atomic<Unmanaged<Page>?>(nil)

    public convenience init(name: String, isPassthrough: Bool = false) {
        self.init(name: name, isPassthrough: isPassthrough, origin: nil)
    }

    init(name: String, isPassthrough: Bool, origin: OriginNames?) {
        self.origin = origin
        self.name = name
        self.isPassthrough = isPassthrough
    }

    /// A note, and the page behind it. Never changed but for that page, which comes once.
    private final class Page: Sendable {
        let key: ObjectIdentifier
        let note: any AnyObject & Sendable
        let next = Atomic<Unmanaged<Page>?>(nil)

        init(_ key: ObjectIdentifier, _ note: any AnyObject & Sendable) {
            self.key = key
            self.note = note
        }
    }

    /// The note of that type, made when it is first asked for. From any thread.
    public func note<Note: ServiceNote>(_ type: Note.Type) -> Note { place(of: type).takeUnretainedValue() }

    /// Where the note of that type is, for as long as this lives: made when it is first asked for. From any thread.
    @inlinable
    func place<Note: ServiceNote>(of type: Note.Type) -> Unmanaged<Note> {
        let place = find(ObjectIdentifier(type)) ?? add(ObjectIdentifier(type), Note())
        // A note of that identity is of that type: a checked cast costs more than all else here.
        return place._withUnsafeGuaranteedRef { Unmanaged.passUnretained(unsafeDowncast($0, to: Note.self)) }
    }

    /// The note of that type; `nil` where nobody asked for one so far. From any thread.
    public func noteIfMade<Note: ServiceNote>(_ type: Note.Type) -> Note? {
        find(ObjectIdentifier(type))?.takeUnretainedValue() as? Note
    }

    @usableFromInline
    func find(_ key: ObjectIdentifier) -> Unmanaged<AnyObject>? {
        var page = first.load(ordering: .acquiring)
        while let found = page {
            // Nothing is retained on the way: pages stay as long as this does.
            if found._withUnsafeGuaranteedRef({ $0.key == key }) {
                return found._withUnsafeGuaranteedRef { Unmanaged.passUnretained($0.note) }
            }
            page = found._withUnsafeGuaranteedRef { $0.next.load(ordering: .acquiring) }
        }
        return nil
    }

    /// Adds a note; where another thread was faster, its note is the one.
    @usableFromInline
    func add(_ key: ObjectIdentifier, _ note: any AnyObject & Sendable) -> Unmanaged<AnyObject> {
        let made = Unmanaged.passRetained(Page(key, note))  // released here below, or by deinit
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

/// Something that wares remember of a service. All loops share it, so it guards itself.
public protocol ServiceNote: AnyObject, Sendable {
    init()
}
