import Testing

@testable import HttpWare

@Suite struct RequestSnapshotsTests {
    private func request(_ value: String) throws -> HttpRequest {
        var request = try HttpRequest(.get, "/\(value)", content: .text(value))
        try request.fields.set("X-Value", to: value)
        return request
    }

    @Test func `each is as the request was, whatever became of it and of those before`() throws {
        var snapshots = RequestSnapshots()
        for round in 0..<3 {
            var request = try request("one\(round)")
            snapshots.take(1, &request, filters: round)
            try request.fields.set("X-Value", to: "two")
            request.fields.append(try FieldLine("X-More", "more"))
            try request.setPath("/two")
            snapshots.take(4, &request, filters: 7)
            request.fields.remove("X-More")
            #expect(snapshots[0] == nil)
            #expect(snapshots[1]?.request.fields["x-value"] == "one\(round)")
            #expect(snapshots[1]?.request.fields.contains("x-more") == false)
            #expect(snapshots[1]?.request.path == "/one\(round)")
            #expect(snapshots[1]?.request.content.bytes == Array("one\(round)".utf8))
            #expect(snapshots[1]?.filters == round)
            #expect(snapshots[4]?.request.fields["x-more"] == "more")
            #expect(snapshots[4]?.request.path == "/two")
            #expect(snapshots[4]?.filters == 7)
            snapshots.clear()
            #expect(snapshots[1] == nil && snapshots[4] == nil)
        }
    }

    @Test func `one that is taken again is in place of its former and of those further in`() throws {
        var snapshots = RequestSnapshots()
        var (first, second) = (try request("first"), try request("second"))
        for index in [1, 2, 5] { snapshots.take(index, &first, filters: 0) }
        snapshots.take(2, &second, filters: 0)
        #expect(snapshots[1]?.request.fields["x-value"] == "first")
        #expect(snapshots[2]?.request.fields["x-value"] == "second")
        #expect(snapshots[5] == nil)
    }
}
