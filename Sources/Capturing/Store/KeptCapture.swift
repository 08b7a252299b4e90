import Synchronization

/// A capture in memory, or on its way to an archive. It is made of its notes when it is first read. May be used from any thread.
public final class KeptCapture: Sendable {
    private enum Form {
        case notes(CaptureNotes)
        /// A capture, and whether its memory differs from the stated one.
        case made(CapturedBox, isRevalued: Bool)
    }

    /// Its number.
    public let id: Int
    let isOpen: Bool
    let isPinned: Bool
    /// The approximate memory in bytes, in the form in which it was put.
    public let memory: Int
    private let form: Mutex<Form>

    /// A capture that is already made.
    public convenience init(_ capture: consuming CapturedExchange) { self.init(CapturedBox(capture)) }

    private init(_ box: CapturedBox) {
        id = box.exchange.id
        isOpen = box.exchange.isOpen
        isPinned = box.exchange.isPinned
        memory = box.exchange.memory
        form = Mutex(.made(box, isRevalued: false))
    }

    /// The capture of an exchange that has ended. The notes must not change from now on.
    init(_ notes: CaptureNotes) {
        id = notes.id
        isOpen = notes.isOpen
        isPinned = notes.isPinned
        memory = notes.memory
        form = Mutex(.notes(notes))
    }

    /// The capture with a user's pin and comment. `self` must not be used any more.
    func marked(isPinned: Bool, comment: String) -> KeptCapture {
        form.withLock { form in
            switch form {
            case .notes(let notes):
                notes.isPinned = isPinned
                notes.comment = comment
                return KeptCapture(notes)
            case .made(let box, _):
                var capture = box.exchange
                capture.isPinned = isPinned
                capture.comment = comment
                return KeptCapture(capture)
            }
        }
    }

    /// The capture, which is kept from now on instead of its notes.
    var box: CapturedBox {
        form.withLock { form in
            switch form {
            case .made(let box, _): return box
            case .notes(let notes):
                let box = CapturedBox(notes.capture())
                form = .made(box, isRevalued: true)
                return box
            }
        }
    }

    /// The capture as a row of a list, which may lack content and messages. It is not kept.
    var row: CapturedBox {
        form.withLock { form in
            switch form {
            case .made(let box, _): box
            case .notes(let notes): CapturedBox(notes.row())
            }
        }
    }

    /// The capture, for a single use: the notes are still kept.
    public var exchange: CapturedExchange {
        let make = form.withLock { form -> () -> CapturedExchange in
            switch form {
            case .notes(let notes): { notes.capture() }
            case .made(let box, _): { box.exchange }
            }
        }
        return make()
    }

    /// The memory of the capture that was made of notes since the last call; `nil` if none was made.
    func takeNewMemory() -> Int? {
        form.withLock { form in
            guard case .made(let box, isRevalued: true) = form else { return nil }
            form = .made(box, isRevalued: false)
            return box.exchange.memory
        }
    }
}
