import HttpWare
import Testing

@testable import HttpCaching

@Suite struct MemoryRecordsTests {
    private let key = Digest256(of: ["one"])

    @Test func `a record is kept, replaced and removed`() async {
        let records = MemoryRecords(limit: .mebibytes(1))
        #expect(await records.get(key) == .none)
        #expect(await records.put([1], under: key, for: .seconds(60)) == .kept)
        #expect(await records.put([2], under: key, for: .seconds(60)) == .kept)
        #expect(await records.get(key) == .record([2]))
        #expect(await records.remove(key))
        #expect(await records.get(key) == .none)
        #expect(records.isReady && records.census?.records == 0 && records.census?.limit == 1 << 20)
    }

    @Test func `of many claims to one key one succeeds, and the others get its record`() async {
        let records = MemoryRecords(limit: .mebibytes(1))
        let claims = await withTaskGroup(of: RecordClaim.self) { group in
            for number in 0..<100 {
                group.addTask { await records.claim(key, with: [UInt8(number)], for: .seconds(60)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(claims.count { $0 == .taken } == 1)
        guard case .record(let bytes) = await records.get(key) else {
            Issue.record("there is no record")
            return
        }
        #expect(claims.count { $0 == .held(bytes) } == 99)
    }

    @Test func `a store without room refuses records and claims, and says how many`() async {
        let records = MemoryRecords(limit: .bytes(1000))
        #expect(await records.put([UInt8](repeating: 0, count: 500), under: key, for: .seconds(60)) == .kept)
        #expect(
            await records.put([UInt8](repeating: 0, count: 500), under: Digest256(of: ["2"]), for: .seconds(60))
                == .full)
        #expect(await records.claim(Digest256(of: ["3"]), with: [], for: .seconds(60)) == .full)
        #expect(records.census?.refused == 2)
        guard case .record = await records.get(key) else {
            Issue.record("a live record was removed")
            return
        }
    }
}
