import HttpWare
import StoreRig
import Testing

@testable import HttpCaching

@Suite struct StoredRecordTests {
    private func record(
        _ lines: [String], vary: [String] = [], request: [String] = [], part: ContentRange? = nil, tags: [String] = [],
        key: String = "http://a.com/", identity: Digest256? = nil, share: String? = nil, length: Int = 12
    ) throws -> StoredRecord {
        let asked = fields(request)
        let judged = Judged(lines)
        var head = StoredHead(
            status: .ok, fields: fields(lines + vary), times: judged.times, directives: judged.directives,
            lifetime: judged.lifetime,
            vary: try #require(VaryKey(fields(vary)) { asked.values(of: $0) }), mode: .shared, part: part, tags: tags)
        head.received = WallTime(seconds: noon.seconds, nanoseconds: 123_456_789)
        return StoredRecord(
            key: CacheKey(Array(key.utf8), identity: identity, share: share), head: head, length: length)
    }

    private func all() throws -> [StoredRecord] {
        [
            try record([]),
            try record(["Cache-Control: max-age=60", "Set-Cookie: a=1", "Set-Cookie: b=2", "X-Empty:", "X-Under: ü"]),
            try record(
                ["Cache-Control: max-age=60, stale-while-revalidate=5, stale-if-error=70, no-cache, must-revalidate"]),
            try record(["Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT", "Date: Sat, 21 Nov 2026 12:00:00 GMT"]),
            try record([], vary: ["Vary: Accept, X-None"], request: ["Accept: a/b", "Accept: c/d"]),
            try record([], part: ContentRange(range: 5..<17, complete: 40), tags: ["one", "zwei ü", ""]),
            try record([], identity: Digest256(of: ["anna"])), try record([], share: "canary"),
            try record([], identity: Digest256(of: ["anna"]), share: ""),
            try record(
                [], part: ContentRange(range: 5..<17, complete: nil), key: String(repeating: "k", count: 16_384)),
        ]
    }

    private func expectSame(_ left: StoredRecord, _ right: StoredRecord) {
        #expect(left.key == right.key && left.length == right.length)
        #expect(left.head.status == right.head.status)
        #expect(left.head.fields.map { "\($0)" } == right.head.fields.map { "\($0)" })
        #expect(left.head.received == right.head.received && left.head.initialAge == right.head.initialAge)
        #expect(left.head.date == right.head.date && left.head.rules == right.head.rules)
        #expect(left.head.vary == right.head.vary && left.head.part == right.head.part)
        #expect(left.head.tags == right.head.tags)
    }

    @Test func `a record reads as it was written`() throws {
        for record in try all() {
            let bytes = try #require(record.bytes)
            let read = try #require(StoredRecord(bytes))
            expectSame(record, read)
            #expect(read.bytes == bytes)
        }
    }

    @Test func `fields that were read are found by name`() throws {
        let bytes = try #require(try record(["ETag: \"a\"", "X-Own: 1", "x-own: 2"]).bytes)
        let head = try #require(StoredRecord(bytes)).head
        #expect(head.fields[.etag] == "\"a\"")
        #expect(head.fields["X-OWN"] == "1, 2")
        #expect(!head.fields.contains("X-Other") && !head.fields.contains(.age))
    }

    @Test func `a record that is cut, longer or changed in any bit is invalid`() throws {
        for record in try all().dropLast() {
            let bytes = try #require(record.bytes)
            for count in 0..<bytes.count { #expect(StoredRecord(Array(bytes[..<count])) == nil) }
            #expect(StoredRecord(bytes + [0]) == nil)
            for bit in 0..<(bytes.count * 8) {
                var other = bytes
                other[bit / 8] ^= 1 << UInt8(bit % 8)
                #expect(StoredRecord(other) == nil)
            }
        }
    }

    /// The checksum finds damage only: a record that another program wrote has a right one.
    @Test func `a record that was forged is read whole, or not at all`() throws {
        for record in try all().dropLast() {
            let bytes = try #require(record.bytes)
            for index in 0..<(bytes.count - 8) {
                for value in [0, 1, 0x0a, 0x0d, 0x7f, 0xff] as [UInt8] {
                    var other = Array(bytes[..<(bytes.count - 8)])
                    other[index] = value
                    var sum = ByteWriter()
                    sum.add(Checksum.of(other))
                    other += sum.bytes
                    guard let read = StoredRecord(other) else { continue }
                    #expect(read.bytes == other)
                    #expect(!read.head.fields.contains { $0.value.utf8.contains(0x0a) || $0.value.utf8.contains(0x0d) })
                }
            }
        }
    }

    @Test(arguments: ["\nidentity " + String(repeating: "a", count: 64), "\nshare canary", "\u{7f}", "\0"])
    func `a record whose URI has control characters is not read`(suffix: String) throws {
        let bytes = try #require(try record([], key: "http://a.com/" + suffix).bytes)
        #expect(StoredRecord(bytes) == nil)
    }

    @Test func `a head that is too long is not written`() throws {
        #expect(try record([], tags: Array(repeating: "tag", count: 200_000)).bytes == nil)
    }
}
