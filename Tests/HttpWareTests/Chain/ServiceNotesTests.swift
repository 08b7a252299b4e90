import Synchronization
import Testing

@testable import HttpWare

@Suite struct ServiceNotesTests {
    private final class One: ServiceNote {
        let count = Atomic(0)
    }

    private final class Other: ServiceNote {}

    @Test func `a note is made when it is first asked for, and stays`() {
        let notes = ServiceNotes(name: "a")
        #expect(notes.noteIfMade(One.self) == nil)
        let one = notes.note(One.self)
        #expect(notes.note(One.self) === one)
        #expect(notes.noteIfMade(Other.self) == nil)
        let other = notes.note(Other.self)
        #expect(notes.noteIfMade(One.self) === one && notes.noteIfMade(Other.self) === other)
    }

    @Test func `an exchange gives the note of its service, and none of a passthrough where that is passed by`() throws {
        let exchange = Exchange(loop: try EventLoop(name: "notes"))
        #expect(exchange.withServiceNote(One.self) { _ in true } == nil)
        for isPassthrough in [false, true] {
            let notes = ServiceNotes(name: "a", isPassthrough: isPassthrough)
            exchange.serviceNotes = notes
            #expect(exchange.withServiceNote(One.self) { $0 === notes.note(One.self) } == true)
            let isGiven = exchange.withServiceNote(One.self, ofPassthrough: false) { $0 === notes.note(One.self) }
            #expect(isGiven == (isPassthrough ? nil : true))
        }
        exchange.reset()
        #expect(exchange.withServiceNote(One.self) { _ in true } == nil)
    }

    @Test func `threads that come together find the same note`() async {
        for _ in 0..<50 {
            let notes = ServiceNotes(name: "a")
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<8 {
                    group.addTask {
                        if index % 2 == 0 { _ = notes.note(Other.self) }
                        notes.note(One.self).count.add(1, ordering: .relaxed)
                    }
                }
            }
            #expect(notes.note(One.self).count.load(ordering: .relaxed) == 8)
        }
    }
}
