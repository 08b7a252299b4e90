import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

@Suite struct PlaceholderGuardTests {
    private static let placeholder = TokenPlaceholder(bytes: Array("hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV".utf8))

    private final class Watch: PlaceholderWatch {
        let reasons = Mutex<[String]>([])
        func credential(of placeholder: TokenPlaceholder) -> String? { "app" }
        func refused(_ placeholder: TokenPlaceholder, _ reason: String, _ exchange: Exchange) {
            reasons.withLock { $0.append(reason) }
        }
    }

    /// The reason for which a request is refused; its credential is for the host, or not.
    private func reason(_ type: String, _ content: String, isForHost: Bool) async throws -> String? {
        let knows = OnRequest { request, exchange in
            let placeholder = PlaceholderGuardTests.placeholder
            if isForHost, !exchange.holdsPlaceholder(placeholder, request, in: [.form]) {
                exchange.forgetSwap(of: placeholder)
            }
            return .pass
        }
        let stage = try DriverStage([knows])
        let watch = Watch()
        await stage.step { $0.server.placeholders = watch }
        var fields = HttpFields()
        try fields.set(.contentType, to: type)
        let bytes = Array(content.utf8)
        await stage.begin(.post, extent: .length(bytes.count), fields: fields)
        await stage.step { stage in
            bytes.withUnsafeBytes { stage.driver.requestContent($0) }
            if stage.driver.phase != .ended { stage.driver.requestEnded(nil) }
            #expect(stage.client.status == 403)
            #expect(stage.origin.streams.isEmpty)
        }
        return watch.reasons.withLock { $0.first }
    }

    @Test(arguments: [
        ("multipart/form-data; boundary=b", "--b\r\ncontent-disposition: form-data; name=f\r\n\r\n%\r\n--b--\r\n"),
        ("text/plain", "%"), ("application/json", "{\"a\":\"%\"}"),
    ])
    func `a placeholder at a place where it is not replaced is refused for that reason, not for the host`(
        type: String, content: String
    ) async throws {
        let text = content.replacing("%", with: PlaceholderGuardTests.placeholder.text)
        let words = type == "application/json" ? "the JSON content" : "the content"
        #expect(
            try await reason(type, text, isForHost: true)
                == "\(words) holds the placeholder of app, which is not replaced there")
        #expect(
            try await reason(type, text, isForHost: false)
                == "\(words) holds the placeholder of app, which is not for example.test")
    }

    @Test(arguments: [HttpStatus.ok, .switchingProtocols])
    func `the filters of a tunnel end with the exchange, which keeps its tokens no longer`(status: HttpStatus)
        async throws
    {
        let upgrades = OnRequest { request, _ in
            request.upgrade = "websocket"
            return .pass
        }
        let stage = try DriverStage([upgrades])
        await stage.step { $0.server.placeholders = Watch() }
        await stage.begin()
        await stage.step { stage in
            let swaps = stage.driver.exchange.tokenSwaps
            #expect(swaps?.sentFilter != nil)
            stage.stream.respond(status, extent: .unknown)
            stage.driver.clientLeft()
            #expect(stage.driver.phase == .ended)
            #expect(swaps != nil && swaps?.sentFilter == nil && swaps?.receivedFilter == nil)
        }
    }
}
