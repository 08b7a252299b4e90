import Testing

@testable import HttpWare

/// HTML Standard §9.2.5 and §9.2.6.
@Suite struct EventReaderTests {
    private typealias Event = EventReader.Event

    private func read(_ text: String, limit: Int = 1000) -> [Event] {
        func read(_ size: Int) -> [Event] {
            var reader = EventReader(limit: limit)
            var events: [Event] = []
            let wire = Array(text.utf8)
            for start in stride(from: 0, to: wire.count, by: size) {
                Array(wire[start..<min(start + size, wire.count)]).withUnsafeBytes {
                    var place = 0
                    while let event = reader.next(in: $0, from: &place) { events.append(event) }
                    #expect(place == $0.count)
                }
            }
            return events
        }
        let whole = read(max(text.utf8.count, 1))
        for size in 1...4 { #expect(read(size) == whole) }
        return whole
    }

    private func event(_ data: String, type: String? = nil, id: String? = nil) -> Event {
        Event(type: type, id: id, data: Array(data.utf8), size: data.utf8.count)
    }

    @Test(arguments: ["\n", "\r\n", "\r"])
    func `events are read with any line end`(end: String) {
        let lines = [
            "\u{feff}: comment", "data: one", "", "event: add", "id: 5", "data:two", "data:  three", "", "retry: 10",
            "", "data", "", "id", "data: last", "", "event: none", "", "data: unfinished", "",
        ]
        let expected = [
            event("one"), event("two\n three", type: "add", id: "5"), event("", id: "5"), event("last", id: ""),
        ]
        #expect(read(lines.joined(separator: end)) == expected)
    }

    @Test func `line ends may be mixed`() {
        let text = "data: a\r\rdata:\u{301}b\r\ndata: \u{301}c\n\r\nevent: e\rdata\r\rdata\r\n\r\ndata: é\r\r\n"
        #expect(
            read(text) == [event("a"), event("\u{301}b\n\u{301}c"), event("", type: "e"), event(""), event("é")])
    }

    @Test(arguments: [
        ("data\u{301}: x", nil), (" data: x", nil), ("Data: x", nil), ("data : x", nil), ("data:\tx", "\tx"),
        ("data::x", ":x"),
        ("data:", ""), ("data", ""), (":data: x", nil), ("\u{feff}\u{feff}data: x", nil), ("datadatadatadata: x", nil),
    ])
    func `a field is known by its exact name, and one space before its value is dropped`(line: String, data: String?) {
        #expect(read(line + "\n\n").map { String(decoding: $0.data, as: UTF8.self) } == (data.map { [$0] } ?? []))
    }

    @Test func `an id with NUL is ignored, and an event with an empty type is a message`() {
        #expect(read("id: 1\nid: 2\0\nevent:\ndata: x\n\n") == [event("x", id: "1")])
    }

    @Test(arguments: [("10", 10), ("", nil), ("1s", nil), ("-1", nil), ("+1", nil), ("99999999999999999999", nil)])
    func `the wait before another connection is a number of milliseconds`(text: String, retry: Int?) {
        var reader = EventReader(limit: 10)
        var place = 0
        _ = Array("retry: \(text)\n".utf8).withUnsafeBytes { reader.next(in: $0, from: &place) }
        #expect(reader.retry == retry)
    }

    @Test func `the last id is that of the last complete event, which was returned`() {
        var reader = EventReader(limit: 10, after: "0")
        let wire = Array("data: a\n\nid: 1\ndata: b\n\nid: 2\n\nid: 3\ndata: c\n".utf8)
        var place = 0
        var ids: [String?] = []
        wire.withUnsafeBytes {
            while let event = reader.next(in: $0, from: &place) { ids += [event.id, reader.lastId] }
        }
        #expect(ids == ["0", "0", "1", "1"] && reader.lastId == "2")
    }

    @Test func `of long data the beginning is kept, and its size counts`() {
        let events = read("event: x\ndata: \(String(repeating: "a", count: 5000))\n\n", limit: 10)
        #expect(events == [Event(type: "x", id: nil, data: Array("aaaaaaaaaa".utf8), size: 5000)])
        let several = read(String(repeating: "data: abc\n", count: 100) + "\n", limit: 10)
        #expect(several == [Event(type: nil, id: nil, data: Array("abc\nabc\nab".utf8), size: 399)])
        var reader = EventReader(limit: 10)
        var place = 0
        Array("data: abc\ndata: abcdefghijklmnopqrstuvwxyz0123456789".utf8).withUnsafeBytes {
            #expect(reader.next(in: $0, from: &place) == nil)
        }
        #expect(reader.size == 3 + 42)
    }

    @Test func `a reader may have any limit`() {
        #expect(read("data: a\n\n", limit: .max).map(\.data) == [[0x61]])
        #expect(read("data: a\n\n", limit: -1).map(\.data) == [[]])
    }
}
