import HttpCaching
import HttpWare
import Testing

@Suite struct ByteRangeTests {
    @Test(arguments: [
        ("bytes=0-0", 0..<1), ("bytes=0-9", 0..<10), ("bytes=0-", 0..<10), ("bytes=5-", 5..<10), ("bytes=-3", 7..<10),
        ("bytes=-30", 0..<10), ("bytes=5-99", 5..<10), ("BYTES=1-2", 1..<3), ("bytes= 1-2 ", 1..<3),
        ("bytes=1-99999999999999999999999", 1..<10), ("bytes=9-9", 9..<10), ("bytes=20-30,1-2", 1..<3),
        ("bytes=0-5,3-7", 0..<8), ("bytes=5-6,0-1", 0..<7), ("bytes=4-4,4-4,-1", 4..<10),
    ])
    func `one part, RFC 9110 §14.1.2`(value: String, range: Range<Int>) {
        #expect(ByteRange([value], length: 10) == .part(range))
    }

    @Test(arguments: ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-"])
    func `nothing that it has is 416, RFC 9110 §14.1.2 and §15.5.17`(value: String) {
        #expect(ByteRange([value], length: 10) == .unsatisfiable)
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=2-1", "bytes=1", "bytes=1-2-3", "lines=1-2", "bytes=1-2,",
        "bytes=+1-2", "bytes=0x1-2", "bytes 1-2", "bytes=1-2,x", "bytes=1.0-2",
    ])
    func `an unreadable range is ignored, RFC 9110 §14.2`(value: String) {
        #expect(ByteRange([value], length: 10) == nil)
    }

    @Test func `several parts stay in the order asked, too many are ignored, RFC 9110 §14.2`() {
        #expect(ByteRange(["bytes=500-600,0-1,90-91"], length: 1000) == .parts([500..<601, 0..<2, 90..<92]))
        #expect(
            ByteRange(["bytes=300-301,500-600,0-1,80-220,580-700"], length: 1000)
                == .parts([0..<302, 500..<701]))
        let many = (0..<17).map { "\($0 * 2)-\($0 * 2)" }.joined(separator: ",")
        #expect(ByteRange(["bytes=" + many], length: 100) == nil)
        #expect(ByteRange(["bytes=0-1", "bytes=2-3"], length: 10) == nil)
    }

    @Test(arguments: ["bytes 0-9/10", "bytes 3-4/*", "Bytes 0-0/1"])
    func `a Content-Range is read, RFC 9110 §14.4`(value: String) {
        #expect(ContentRange(reading: value) != nil)
    }

    @Test(arguments: [
        "", "bytes */10", "bytes 5-4/10", "bytes 0-10/10", "bytes 0-9", "bytes -1-9/10", "lines 0-1/2", "bytes 0-9/x",
        "bytes 0-9223372036854775807/*", "bytes=0-9/10",
    ])
    func `or refused, RFC 9110 §14.4`(value: String) {
        #expect(ContentRange(reading: value) == nil)
    }
}
