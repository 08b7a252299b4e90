import Testing

@testable import HttpWare

@Suite struct RequestSnapshotsTests {
    private func request(_ value: String) throws -> HttpRequest {
        var request = try HttpRequest(.get, "/\(value)", content: .text(value))
        try request.fields.set("X-Value", to: value)
        return request
    }

    private func restored(_ index: Int, _ snapshots: RequestSnapshots, _ present: HttpRequest) -> HttpRequest? {
        var request = present
        return snapshots[index]?.restore(&request) == true ? request : nil
    }

    private func received(_ lines: [String]) throws -> HttpRequest {
        var request = HttpRequest()
        try RequestHeadDecoder.decode(
            lines: ["GET /received HTTP/1.1"] + lines, into: &request, limits: HeadLimits(), isReverse: true)
        return request
    }

    @Test(arguments: [
        [], ["Host: a"],
        ["Host: a", "X-Value: received", "X-Gone: 1", "X-Value: again", "Connection: X-Hop", "X-Hop: 1"],
    ])
    func `fields as they were received come back, whatever wares did to them`(lines: [String]) throws {
        var snapshots = RequestSnapshots()
        var request = try received(lines.isEmpty ? ["Host: a"] : lines)
        let before = request
        snapshots.takeSnapshot(1, &request, filters: 0)
        try request.fields.set("X-Value", to: "changed")
        request.fields.remove("X-Gone")
        request.fields.remove("Host")
        try request.fields.append("Authorization", "Bearer t")
        try request.setPath("/changed")
        snapshots.takeSnapshot(2, &request, filters: 0)
        for _ in 0..<2 {
            let first = try #require(restored(1, snapshots, request))
            #expect(first.fields.description == before.fields.description)
            #expect(first.path == "/received")
            #expect(first.fields.isAsReceived)
            let second = try #require(restored(2, snapshots, first))
            #expect(second.fields.description == request.fields.description)
            #expect(!second.fields.isAsReceived)
            request = second
            try request.fields.set("X-Value", to: "changed again")
            snapshots.takeSnapshot(2, &request, filters: 0)
        }
    }

    @Test func `a target as it was received comes back, whatever wares did to it`() throws {
        var request = HttpRequest()
        try RequestHeadDecoder.decode(
            lines: ["GET /a/../b?c=d HTTP/1.1", "Host: One.example:81"], into: &request, limits: HeadLimits(),
            isReverse: false)
        func described(_ request: HttpRequest) -> [String?] {
            [
                request.upstreamTarget, request.path, request.query, request.authority?.description,
                request.fields["host"], request.method.name,
            ]
        }
        let before = described(request)
        var snapshots = RequestSnapshots()
        snapshots.takeSnapshot(1, &request, filters: 0)
        for change in 0..<4 {
            if change != 1 { try request.setPath("/changed") }
            if change != 2 { try request.setQuery(change == 0 ? nil : "x=y") }
            if change != 3 { request.setAuthority(Authority(host: "two.example", port: 82)) }
            request.method = .post
            #expect(described(request) != before)
            request = try #require(restored(1, snapshots, request))
            #expect(described(request) == before)
            #expect(request.target.isAsReceived && !request.isAuthorityChanged)
        }
    }

    @Test func `a message that a ware made in place of what was received is not taken for it`() throws {
        var request = try received(["Host: a"])
        var snapshots = RequestSnapshots()
        snapshots.takeSnapshot(1, &request, filters: 0)
        let made = try HttpRequest(.get, "/received")
        #expect(restored(1, snapshots, made) == nil)
        var another = made
        snapshots.takeSnapshot(1, &another, filters: 0)
        try another.setPath("/x")
        #expect(restored(1, snapshots, another)?.path == "/received")
    }

    @Test func `fields that were replaced by another message's are not available again`() throws {
        var snapshots = RequestSnapshots()
        var request = try received(["Host: a", "X-Value: received"])
        snapshots.takeSnapshot(1, &request, filters: 0)
        request.fields = HttpFields()
        try request.fields.set("X-Value", to: "another's")
        #expect(snapshots[1]?.isAtHand(request) == false)
        #expect(restored(1, snapshots, request) == nil)
    }

    @Test func `each is as the request was, whatever became of it and of those before`() throws {
        var snapshots = RequestSnapshots()
        for round in 0..<3 {
            var request = try request("one\(round)")
            snapshots.takeSnapshot(1, &request, filters: round)
            try request.fields.set("X-Value", to: "two")
            request.fields.append(try FieldLine("X-More", "more"))
            try request.setPath("/two")
            snapshots.takeSnapshot(4, &request, filters: 7)
            request.fields.remove("X-More")
            #expect(snapshots[0] == nil)
            #expect(restored(1, snapshots, request)?.fields["x-value"] == "one\(round)")
            #expect(restored(1, snapshots, request)?.fields.contains("x-more") == false)
            #expect(restored(1, snapshots, request)?.path == "/one\(round)")
            #expect(restored(1, snapshots, request)?.content.bytes == Array("one\(round)".utf8))
            #expect(snapshots[1]?.filters == round)
            #expect(restored(4, snapshots, request)?.fields["x-more"] == "more")
            #expect(restored(4, snapshots, request)?.path == "/two")
            #expect(snapshots[4]?.filters == 7)
            snapshots.clear()
            #expect(snapshots[1] == nil && snapshots[4] == nil)
        }
    }

    @Test func `a snapshot that is taken again replaces its former one and all further in`() throws {
        var snapshots = RequestSnapshots()
        var (first, second) = (try request("first"), try request("second"))
        for index in [1, 2, 5] { snapshots.takeSnapshot(index, &first, filters: 0) }
        snapshots.takeSnapshot(2, &second, filters: 0)
        #expect(restored(1, snapshots, second)?.fields["x-value"] == "first")
        #expect(restored(2, snapshots, first)?.fields["x-value"] == "second")
        #expect(snapshots[5] == nil)
    }
}
