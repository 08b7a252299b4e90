import Foundation
import HttpCaching
import HttpWare
import HttpWareTesting
import Testing

@testable import DiskCaching

@Suite struct DiskRecordsTests {
    private let folder = StoreFolder()

    private func key(_ number: Int) -> Digest256 { Digest256(of: ["\(number)"]) }

    private func open(_ limit: ByteCount = .mebibytes(16)) async throws -> DiskRecords {
        let records = DiskRecords(path: folder.path, limit: limit, name: "test")
        try await eventually { records.isReady }
        return records
    }

    private var path: String { folder.path + "/records" }

    private func fill(_ records: DiskRecords, _ numbers: Range<Int>) async {
        for number in numbers {
            #expect(await records.put(Array("value \(number)".utf8), under: key(number), for: .seconds(600)) == .kept)
        }
    }

    private func has(_ records: DiskRecords, _ number: Int) async -> Bool {
        await records.get(key(number)) == .record(Array("value \(number)".utf8))
    }

    @Test func `records, changes, claims and removals survive a restart`() async throws {
        do {
            let records = try await open()
            await fill(records, 0..<10)
            #expect(await records.put([1, 2], under: key(3), for: .seconds(600)) == .kept)
            #expect(await records.claim(key(10), with: [7], for: .seconds(600)) == .taken)
            #expect(await records.claim(key(10), with: [8], for: .seconds(600)) == .held([7]))
            #expect(await records.remove(key(4)))
            #expect(await records.put([], under: key(11), for: .nanoseconds(1)) == .kept)
            records.close()
        }
        let records = try await open()
        for number in [0, 1, 2, 5, 6, 7, 8, 9] { #expect(await has(records, number)) }
        #expect(await records.get(key(3)) == .record([1, 2]))
        #expect(await records.get(key(10)) == .record([7]))
        for number in [4, 11] { #expect(await records.get(key(number)) == .none) }
    }

    @Test func `a store whose file is not read yet, or was closed, does not guess`() async throws {
        do {
            let records = DiskRecords(path: folder.path, name: "test")
            #expect(await records.get(key(1)) == .unavailable)
            records.close()
        }
        let opened = try await open()
        opened.close()
        #expect(await opened.get(key(1)) == .unavailable)
        #expect(await opened.put([], under: key(1), for: .seconds(1)) == .unavailable)
        #expect(await opened.claim(key(1), with: [], for: .seconds(1)) == .unavailable)
        #expect(!(await opened.remove(key(1))))
    }

    @Test func `many writers at once are all on the disk`() async throws {
        let records = try await open()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<500 {
                let (key, value) = (key(number), Array("value \(number)".utf8))
                group.addTask { #expect(await records.put(value, under: key, for: .seconds(600)) == .kept) }
            }
        }
        records.close()
        let again = try await open()
        for number in 0..<500 { #expect(await has(again, number)) }
    }

    @Test(arguments: [1, 15, 16, 17, 40, 62])
    func `a change that was cut off at the end is removed, and all before it are kept`(missing: Int) async throws {
        do {
            let records = try await open()
            await fill(records, 0..<5)
            records.close()
        }
        let bytes = try Data(contentsOf: URL(filePath: path))
        try bytes.dropLast(missing).write(to: URL(filePath: path))
        do {
            let records = try await open()
            for number in 0..<4 { #expect(await has(records, number)) }
            #expect(await records.get(key(4)) == .none)
            await fill(records, 5..<7)
            records.close()
        }
        let records = try await open()
        for number in [0, 1, 2, 3, 5, 6] { #expect(await has(records, number)) }
    }

    @Test func `damage takes the records that it hits, and no others`() async throws {
        do {
            let records = try await open()
            await fill(records, 0..<20)
            records.close()
        }
        var bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
        let each = RecordJournal.Change(key: key(0), end: 1, bytes: Array("value 0".utf8)).count
        // A bit of the second record's value, and the length of the fifth.
        let head = RecordJournal.Mark.fileHeadBytes
        bytes[head + each + each - 1] ^= 1
        bytes[head + 4 * each + 9] ^= 0xff
        try Data(bytes).write(to: URL(filePath: path))
        let records = try await open()
        for number in 0..<20 { #expect(await has(records, number) == ![1, 4].contains(number), "\(number)") }
    }

    @Test func `the file stays short, however often a record changes`() async throws {
        let records = try await open()
        await fill(records, 0..<10)
        let value = [UInt8](repeating: 7, count: 100_000)
        for _ in 0..<100 { #expect(await records.put(value, under: key(100), for: .seconds(600)) == .kept) }
        let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
        #expect(size < 2 << 20)
        records.close()
        let again = try await open()
        for number in 0..<10 { #expect(await has(again, number)) }
        #expect(await again.get(key(100)) == .record(value))
    }

    @Test func `a second process does not write to the file`() async throws {
        let records = try await open()
        await fill(records, 0..<1)
        let other = DiskRecords(path: folder.path, name: "other")
        #expect(try await !settledValue { other.isReady })
        #expect(await other.claim(key(1), with: [], for: .seconds(1)) == .unavailable)
    }

    // MARK: The file

    @Test func `changes are read from pieces of any size`() {
        let changes = (0..<20).map { number in
            RecordJournal.Change(
                key: key(number), end: Int64(number), bytes: [UInt8](repeating: 0x48, count: number * 3))
        }
        let mark = RecordJournal.Mark()
        let bytes = mark.fileHead + changes.flatMap { $0.frame(mark) }
        for size in [1, 2, 7, 16, 64, 1000, bytes.count] {
            var scanner = RecordJournal.Scanner()
            var read: [RecordJournal.Change] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                scanner.take(bytes[start..<min(bytes.count, start + size)], isEnd: false) { read.append($0) }
            }
            scanner.take([], isEnd: true) { read.append($0) }
            #expect(read == changes && scanner.damages == 0)
        }
    }

    @Test func `a record whose bytes look like changes of the file stays a record, when it is damaged too`() {
        let mark = RecordJournal.Mark()
        let inner = RecordJournal.Change(key: key(9), end: 1, bytes: [1]).frame(RecordJournal.Mark())
        let outer = RecordJournal.Change(key: key(1), end: 1, bytes: inner + inner).frame(mark)
        let last = RecordJournal.Change(key: key(2), end: 1, bytes: [2])
        for place in [RecordJournal.Mark.count + 5, outer.count - 1] {
            var damaged = outer
            damaged[place] ^= 1
            var scanner = RecordJournal.Scanner()
            var read: [RecordJournal.Change] = []
            scanner.take((mark.fileHead + damaged + last.frame(mark))[...], isEnd: true) { read.append($0) }
            #expect(read == [last] && scanner.damages == 1)
        }
    }

    @Test func `a file that begins otherwise has no records, and takes new ones`() async throws {
        try FileManager.default.createDirectory(atPath: folder.path, withIntermediateDirectories: true)
        for beginning in ["", "HW", "HWr1 and more than twelve bytes", "HWr2", "HWr0, which is damaged, too"] {
            try Data(beginning.utf8).write(to: URL(filePath: path))
            let records = try await open()
            await fill(records, 0..<2)
            records.close()
            let again = try await open()
            for number in 0..<2 { #expect(await has(again, number), "\(beginning)") }
            again.close()
            // A file that may have had records is kept for its owner: the first one.
            let aside = try? String(contentsOfFile: path + ".damaged", encoding: .utf8)
            #expect(aside == (["", "HW"].contains(beginning) ? nil : "HWr1 and more than twelve bytes"))
        }
    }

    @Test func `any bytes are read to their end, without a trap`() {
        let mark = RecordJournal.Mark()
        let frame = RecordJournal.Change(key: key(1), end: 5, bytes: [1, 2, 3]).frame(mark)
        var random = SystemRandomNumberGenerator()
        for _ in 0..<5000 {
            var bytes = mark.fileHead + frame + frame + frame
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let end = Int.random(in: 0...bytes.count, using: &random)
            var scanner = RecordJournal.Scanner()
            var count = 0
            scanner.take(bytes[..<end], isEnd: true) { _ in count += 1 }
            #expect(count <= 3)
        }
    }
}
