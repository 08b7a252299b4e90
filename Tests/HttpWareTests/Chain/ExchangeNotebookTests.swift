import Testing

@testable import HttpWare

@Suite struct ExchangeNotebookTests {
    private final class Thing {}
    private enum Held: ExchangeKey { typealias Value = Thing }
    private enum Count: ExchangeKey { typealias Value = Int }
    private enum Word: ExchangeKey { typealias Value = String }

    @Test func `a value that is written under a key is found under it alone until the pages are emptied`() {
        var notebook = ExchangeNotebook()
        defer { notebook.free() }
        for round in 0..<3 {
            #expect(notebook.value(of: Count.self) == nil && notebook.value(of: Word.self) == nil)
            notebook.page(of: Count.self).pointee = round
            #expect(notebook.value(of: Word.self) == nil)
            notebook.page(of: Word.self).pointee = "\(round)"
            notebook.page(of: Count.self).pointee? += 1
            #expect(notebook.value(of: Count.self) == round + 1 && notebook.value(of: Word.self) == "\(round)")
            notebook.page(of: Word.self).pointee = nil
            #expect(notebook.value(of: Word.self) == nil)
            notebook.empty()
        }
    }

    @Test func `a page stays where it is from one exchange to the next`() {
        var notebook = ExchangeNotebook()
        defer { notebook.free() }
        let first = notebook.page(of: Count.self)
        _ = notebook.page(of: Word.self)
        _ = notebook.page(of: Held.self)
        notebook.empty()
        _ = notebook.page(of: Word.self)
        #expect(notebook.page(of: Count.self) == first)
    }

    @Test func `remembered values are released when the pages are emptied, and when the notebook goes`() {
        weak var thing: Thing?
        func remember(_ notebook: inout ExchangeNotebook) {
            let made = Thing()
            thing = made
            notebook.page(of: Held.self).pointee = made
        }
        var notebook = ExchangeNotebook()
        remember(&notebook)
        #expect(thing != nil)
        notebook.empty()
        #expect(thing == nil)
        remember(&notebook)
        #expect(thing != nil)
        notebook.free()
        #expect(thing == nil)
    }
}
