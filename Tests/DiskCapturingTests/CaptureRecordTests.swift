@testable import Capturing
@testable import DiskCapturing
import HttpWare
import Testing

@Suite struct CaptureRecordTests {
    private func read(_ bytes: [UInt8]) throws -> CapturedExchange {
        var exchange = self.exchange
        try bytes.withUnsafeBytes { try CaptureRecord.readRest($0, into: &exchange) }
        return exchange
    }

    private let exchange = CapturedExchange(
        id: 1, started: WallTime(seconds: 0), method: "GET", url: "http://a.test/", version: "HTTP/1.1",
        listener: "web",
        request: CapturedMessage(fields: [.init("X-Some", bytes: [0x76, 0xff, 0xfe])]))

    @Test func `values that are not UTF-8 are read as they were`() throws {
        #expect(try read(CaptureRecord.rest(exchange)).request == exchange.request)
    }

    @Test(arguments: [[0xff, 0xfe], [0xc3, 0x28], [0x80, 0x80]] as [[UInt8]])
    func `a name that is not UTF-8 is damage, because it would be written otherwise`(name: [UInt8]) throws {
        let bytes = CaptureRecord.rest(exchange)
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: "X-Some".utf8) })
        var damaged = bytes
        damaged.replaceSubrange(place..<place + name.count, with: name)
        #expect(throws: DamagedRecord.self) { try read(damaged) }
    }
}
