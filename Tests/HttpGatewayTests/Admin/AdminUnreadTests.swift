import Foundation
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct AdminUnreadTests {
    private func stage() throws -> AdminStage {
        let folder = FileManager.default.temporaryDirectory.appending(path: "httpware-unread-\(UUID())").path
        try CertificateAuthority.make(in: folder, name: "test")
        return try AdminStage(
            """
            version: 1
            listeners:
              one: { mode: forward, bind: "127.0.0.1:0", intercept: { hosts: ["*"], ca: "\(folder)" } }
              two: { mode: forward, bind: "127.0.0.2:0", intercept: { hosts: ["*"], ca: "\(folder)" } }
            routes: [{ service: passthrough }]
            """)
    }

    private func hosts(_ answer: (status: Int, json: [String: Any])) -> [[String: Any]] {
        answer.json["unread"] as? [[String: Any]] ?? []
    }

    @Test func `without a refusal nothing passes unread`() async throws {
        let stage = try stage()
        #expect(hosts(try await stage.ask("/v1/unread")).isEmpty)
        #expect(try await stage.ask("/v1/unread/1", .delete).status == 404)
        #expect(try await stage.ask("/v1/unread/x", .delete).status == 404)
        #expect(try await stage.ask("/v1/unread", .delete).json["readAgain"] as? Int == 0)
    }
}
