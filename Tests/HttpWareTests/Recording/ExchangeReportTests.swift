import Foundation
import Testing

@testable import HttpWare

@Suite struct ExchangeReportTests {
    /// All members, in their order.
    private static let whole = #"""
        {"id":"7","exchange":"a\"b","time":"2026-01-02T03:04:05.000006Z","duration":1.250,"listener":"web","route":"r",
        "service":"s","endpoint":"1.2.3.4:80","client":"::1","tunnel":{"host":"a.test","port":443,"address":"1.1.1.1",
        "principal":"p"},"unread":"pinned","method":"GET","scheme":"https","target":"/a\\b\n","host":"h",
        "protocol":"HTTP/2","status":200,"end":"completed","responder":"upstream","cache":"hit","rules":["1","22"],
        "fault":"f","reason":"é\u007f","attempts":2,"replays":1,"reused":true,"requestBytes":0,"responseBytes":1024,
        "unfilteredBytes":12345678901,"phases":[{"phase":"dns","attempt":1,"endpoint":"e","start":0.000,"duration":0.001,
        "fault":"f"},{"phase":"connect","attempt":2,"start":1.000,"duration":12345.678}],"wares":[{"ware":"w",
        "side":"request","attempt":1,"decision":"passed","text":"t","start":0.000,"duration":0.010,"added":["A","B"],
        "removed":[],"rewritten":["C"],"replacedFields":false,"method":"PUT","target":"/x","status":404}],"cut":true}
        """#.replacing("\n", with: "")

    /// Only the members that are always there.
    private static let bare = #"""
        {"id":"1","time":"t","duration":0.000,"listener":"web","method":"-","target":"-","protocol":"-","status":0,
        "end":"cutOff","responder":"gateway","attempts":0,"replays":0,"reused":false,"requestBytes":0,"responseBytes":0,
        "phases":[],"wares":[],"cut":false}
        """#.replacing("\n", with: "")

    @Test(arguments: [whole, bare])
    func `a report is the same JSON after it was read`(text: String) throws {
        let report = try JSONDecoder().decode(ExchangeReport.self, from: Data(text.utf8))
        #expect(report.json == text)
        #expect(report.jsonBytes == Array(text.utf8))
    }
}
