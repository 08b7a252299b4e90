import DiskCaching
import GatewayConfig
import HttpCaching
import HttpWare
import Testing

/// A program reads the kinds of stores that it has.
@Suite struct StoreKindsTests {
    private func read(_ stores: [any StoreKind.Type], _ entry: String) -> ConfigurationReader.Result {
        let text = """
            version: 1
            stores:
              pages: { \(entry) }
            chains: { app: { middlewares: [{ httpCache: { store: pages } }] } }
            """
        let files = ConfigurationFiles(
            read: { _, _ throws(ConfigurationFiles.Fault) in Array(text.utf8) }, list: { _ in [] })
        return ConfigurationReader(
            wares: ScriptedWares.all, stores: stores, environment: [:], files: files, isForClient: true
        ).read(path: "client.yaml")
    }

    @Test(arguments: [
        ("disk: { path: /var/cache }", "disk", "DiskCaching", "DiskKind"),
        ("redis: { url: 'redis://a' }", "redis", "HttpWareRedis", "RedisKind"),
    ])
    func `a kind that the program does not have is an error with its place and the module to import`(
        entry: String, key: String, module: String, kind: String
    ) {
        let result = read([], entry)
        #expect(result.configuration == nil)
        #expect(
            result.errors.map(\.description) == [
                "client.yaml:3:12: error: stores.pages.\(key): this program has no stores of this kind;"
                    + " import \(module) and pass stores: [\(kind).self]"
            ])
    }

    @Test func `a kind that the program has is made`() throws {
        let result = read([DiskKind.self], "disk: { path: /var/cache, maxSize: 32MiB }")
        let store = try #require(result.configuration?.stores.first?.store, "\(result.errors)")
        #expect(store.store is DiskStore)
        #expect(
            store.definition
                == StoreDefinition(name: "pages", kind: DiskKind(path: FilePath("/var/cache"), maxSize: .mebibytes(32)))
        )
    }

    @Test func `every program has stores in memory, and another kind is unknown`() {
        #expect(read([], "memory: { maxSize: 2MiB }").configuration?.stores.first?.store.store is MemoryStore)
        #expect(
            read([], "tape: {}").errors.map(\.message) == ["unknown option; memory is missing"])
    }

    @Test func `definitions are equal when name, kind and options are`() {
        func definition(_ path: String, _ mebibytes: Int) -> StoreDefinition {
            StoreDefinition(name: "a", kind: DiskKind(path: FilePath(path), maxSize: .mebibytes(mebibytes)))
        }
        #expect(definition("/a", 16) == definition("/a", 16))
        #expect(
            Set([definition("/a", 16), definition("/a", 16), definition("/b", 16), definition("/a", 17)]).count == 3)
        #expect(StoreDefinition(name: "a", kind: MemoryKind(maxSize: .mebibytes(16))) != definition("/a", 16))
    }
}
