import Capturing
import Foundation
import HttpWare
import Testing

@testable import DiskCapturing

/// Run by hand, in a release build: `HTTPWARE_MEASURE=1 swift test -c release -Xswiftc -enable-testing --filter FilterSpeedTests`.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["HTTPWARE_MEASURE"] != nil)) struct FilterSpeedTests {
    @Test func `the first page of a filter over 100000 captures`() throws {
        let path = NSTemporaryDirectory() + "httpware-speed-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let folder = CaptureFolder(CaptureDisk(path: FilePath(path), maxSize: .gibibytes(2)))
        var settings = CaptureSettings()
        settings.memory = .gibibytes(2)
        let memory = CaptureStore(settings)
        settings.memory = .mebibytes(1)
        let disk = CaptureStore(settings, archive: folder)
        for id in 1...100_000 {
            let capture = CaptureFolderTests.capture(id, 1000)
            _ = memory.take([capture])
            _ = disk.take([capture])
            if id % 2000 == 0 { folder.flush() }
        }
        #expect(disk.ids(filter: nil).count == 100_000)
        for text in [
            "~u nothing", "~u path/77$", "~d host-3 & ~c 200 & ~u 00001", "~did nothing", "~ware nothing",
            "~hq 'field-77$'", "~bq 'content 77 '", "~m get",
        ] {
            let filter = try CaptureFilter(text)
            for (name, store) in [("memory", memory), ("disk", disk)] {
                let times = (0..<5).map { _ in
                    ContinuousClock().measure { _ = store.list(limit: 100, filter: filter) }
                }
                print("\(name)\t\(text)\t\(times.sorted()[2])")
            }
        }
    }
}
