import Testing

@testable import HttpWare

@Suite struct CarriedInputTests {
    /// Feeds a head in pieces, as a connection does. Returns the rest that waits, and how much was copied.
    private func feed(_ bytes: [UInt8], by piece: Int, use: (UnsafeRawBufferPointer) -> Int) -> (left: Int, copied: Int)
    {
        var carry = CarriedInput()
        for start in stride(from: 0, to: bytes.count, by: piece) {
            bytes[start..<min(start + piece, bytes.count)].withUnsafeBytes { new in
                if carry.isEmpty {
                    let used = use(new)
                    if used < new.count { carry.hold(new[used...]) }
                } else {
                    let held = carry.take(adding: new)
                    let used = held.withUnsafeBytes(use)
                    carry.putBack(held, used: used)
                }
            }
        }
        return (carry.count, carry.copied)
    }

    @Test(arguments: [100, 1_000, 10_000, 200_000])
    func `each byte of a head that arrives byte by byte is copied once`(count: Int) {
        let head = [UInt8](repeating: 0x61, count: count)
        let result = feed(head, by: 1) { _ in 0 }
        #expect(result.left == count && result.copied == count)
    }

    @Test func `used bytes go, and the rest stays in order`() {
        var seen: [[UInt8]] = []
        let result = feed(Array(0..<10), by: 3) { bytes in
            seen.append(Array(bytes))
            return bytes.count / 2
        }
        #expect(seen == [[0, 1, 2], [1, 2, 3, 4, 5], [3, 4, 5, 6, 7, 8], [6, 7, 8, 9]])
        #expect(result.left == 2)
    }

    @Test func `a byte of a response's head is looked at once, however the head arrives`() throws {
        let head = Array("HTTP/1.1 200 OK\r\nX: \(String(repeating: "y", count: 5_000))\r\n\r\n".utf8)
        var decoder = ResponseHeadDecoder()
        var response = HttpResponse(.ok)
        var length: Int?
        let result = feed(head, by: 1) { bytes in
            length = try? decoder.decode(bytes.bytes, into: &response, method: .get, limits: .response)
            return length ?? 0
        }
        #expect(length == head.count && result.left == 0 && result.copied <= head.count)
        #expect(response.fields["X"]?.utf8.count == 5_000)
    }
}
