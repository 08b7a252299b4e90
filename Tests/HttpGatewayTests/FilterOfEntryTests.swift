import GatewayConfig
import HttpGateway
import HttpWare
import Testing
import GatewayWares

/// `filter` beside `if` in a file.
@Suite struct FilterOfEntryTests {
    private func mistakes(_ middlewares: String, postwares: String = "[]") -> [String] {
        let text = """
            version: 1
            listeners: { web: { bind: "127.0.0.1:8080", chain: all } }
            services: { api: { baseUrl: "http://127.0.0.1:3000" } }
            chains: { all: { middlewares: \(middlewares), postwares: \(postwares) } }
            routes: [{ service: api }]
            """
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        return ConfigurationReader(wares: BuiltinWares.all, stores: GatewayStores.all, environment: [:], files: files)
            .read(path: "file").errors.map(\.message)
    }

    @Test(arguments: ["~d example.com & ~m POST", "~bq needle", "~gql Orders", "~hq cookie | ~src 127"])
    func `a filter of what is known is accepted`(filter: String) {
        for ware in ["fault: { status: 503 }", "throttle: { preset: dsl }", "break: {}"] {
            #expect(mistakes("[{ \(ware), filter: \"\(filter)\" }]") == [])
        }
        #expect(mistakes("[]", postwares: "[{ break: {}, filter: \"~c 500 & \(filter)\" }]") == [])
    }

    @Test(arguments: [("~m GET & ~c 500", 10), ("~bs x", 1), ("(~u a ~t json)", 7), ("~dur >1s", 1), ("~did held", 1)])
    func `a filter of what comes later is refused with its column`(filter: String, column: Int) throws {
        let error = try #require(mistakes("[{ fault: { status: 503 }, filter: \"\(filter)\" }]").first)
        #expect(error.contains("column \(column): "), "\(error)")
    }

    @Test func `a record is filtered at its end, except by the decisions of wares`() {
        let record = "record: { file: /tmp/a.har }"
        #expect(mistakes("[{ \(record), filter: \"~c 500 & ~dur >1s & ~bs x & ~e\" }]") == [])
        #expect(mistakes("[{ \(record), filter: \"~e & ~did held\" }]").first?.contains("column 6: ") == true)
    }

    @Test func `other wares take no filter, and a mistake in one has a column`() throws {
        #expect(mistakes("[{ mock: {}, filter: \"~all\" }]") == ["has no effect on mock; use if"])
        let error = try #require(mistakes("[{ break: {}, filter: \"~d (a\" }]").first)
        #expect(error.contains("see column"), "\(error)")
    }

    @Test func `a break stands on both sides, a two-sided ware only among middlewares`() {
        #expect(mistakes("[break]", postwares: "[break]") == [])
        #expect(mistakes("[]", postwares: "[{ fault: { status: 503 } }]").count == 1)
    }
}
