import Testing

@testable import HttpWareCommand

@Suite struct EventStreamTests {
    private static let text = """
        : hello\n\nevent: dropped\ndata: {"dropped": 3}\n\ndata: one\ndata:two\n\nid: 7\nretry: 1\n\ndata\r\n\r\ndata: é\r\rdata: not whole
        """
    private static let events = ["dropped={\"dropped\": 3}", "=one\ntwo", "=", "=é"]

    @Test func `events are read, whole and one byte at a time - WHATWG HTML §9.2.6`() {
        var stream = EventStream()
        #expect(stream.add(EventStreamTests.text.utf8).map { "\($0.event)=\($0.data)" } == EventStreamTests.events)
        var slow = EventStream()
        let read = EventStreamTests.text.utf8.flatMap { slow.add(CollectionOfOne($0)) }
        #expect(read.map { "\($0.event)=\($0.data)" } == EventStreamTests.events)
    }
}
