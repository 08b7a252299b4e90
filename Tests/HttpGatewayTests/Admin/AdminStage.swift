import Foundation
import GatewayConfig
import HttpWare
import HttpWareTesting
import Testing
import GatewayWares

@testable import HttpGateway

/// The admin listener's endpoints over a configuration that runs nowhere.
final class AdminStage {
    let configuration: GatewayConfiguration
    private let exchange: TestExchange

    init(_ text: String) throws {
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files
        ).read(
            path: "test.yaml")
        configuration = try #require(result.configuration, "\(result.errors)")
        let now = WallTime(seconds: 1_800_000_000)
        let subject = AdminSubject(
            status: GatewayStatus(configuration, at: now), census: Census([]), loop: try EventLoop(name: "test"),
            records: nil, reload: { _ in })
        let bind = try #require(SocketAddress("127.0.0.1:9900"))
        let api = AdminApi(
            guarding: AdminGuard(bind: bind, token: nil), endpoints: AdminEndpoint.all(subject, ui: false))
        var setting = TestExchange.Setting()
        setting.bind = bind
        exchange = try TestExchange([api, AdminFields()], setting: setting)
    }

    /// The answer, and its JSON.
    func ask(_ path: String, _ method: HttpMethod = .get) async throws -> (status: Int, json: [String: Any]) {
        let response = try await exchange.send(.make(method, path, fields: ["Host": "localhost"]))
        let content = Data((response.content.text ?? "").utf8)
        let json = try JSONSerialization.jsonObject(with: content) as? [String: Any]
        return (response.status.code, try #require(json))
    }

    func advance(by time: Duration) async { await exchange.advance(by: time) }
}
