import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct BackgroundSinkTests {
    @Test func `it tells its receiver of content and of the end, once, and takes all there is`() async throws {
        let stage = try DriverStage([] as [any Ware])
        let notes = Notes()
        await stage.begin()
        await stage.step { stage in
            let sink = BackgroundSink(stage.driver, NotingReceiver(notes))
            Array("abc".utf8).withUnsafeBytes { sink.sendContent($0) }
            #expect(!sink.isBlocked)
            sink.sendEnd(nil)
            sink.cutOff()
        }
        #expect(notes.all == ["content abc", "end true"])
    }
}

/// Notes a response that has no client.
final class NotingReceiver: BackgroundReceiver {
    private let notes: Notes

    init(_ notes: Notes) { self.notes = notes }

    func responseStarted(_ response: HttpResponse, in exchange: Exchange) { notes.add("head \(response.status.code)") }
    func responseContent(_ bytes: UnsafeRawBufferPointer) {
        notes.add("content " + String(decoding: bytes, as: UTF8.self))
    }
    func responseEnded(isWhole: Bool) { notes.add("end \(isWhole)") }
}
