import GatewayConfig
import GatewayWares
import HttpWare

@testable import HttpGateway

/// Labels of hostile containers, service files, and answers of an engine that lies.
extension Fuzzing {
    private static let file = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:8080" } }
        admin: { bind: "127.0.0.1:9900", token: none }
        discover: { docker: {} }
        chains: { web: { middlewares: [bodyLimit] } }
        """

    private static let finder = ConfigurationReader(
        wares: BuiltinWares.all.filter { $0.name != "accessLog" }, environment: ["A": "secret-of-the-environment"],
        files: ConfigurationFiles(
            read: { path, _ throws(ConfigurationFiles.Fault) in
                guard path == "main.yaml" else { throw ConfigurationFiles.Fault("opened \(path)") }
                return Array(Fuzzing.file.utf8)
            },
            list: { _ in [] }))

    /// The input is read as the labels of two containers, as a service file, as a list of containers, or as an event: it makes a configuration, or is
    /// left out with a reason. It opens no file and no listener, and leads nowhere else than its addresses say.
    public static func foundServices(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, bytes) = input(start, count) else { return }
        var instances: [FoundInstance] = []
        switch choice & 3 {
        case 0:
            for (number, part) in bytes.split(separator: 0).prefix(2).enumerated() {
                let lines = part.split(separator: 0x0a).map { text(Array($0)) }
                let labels = lines.map { line -> (key: String, value: String) in
                    let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                    return ("httpware." + parts[0], parts.count > 1 ? String(parts[1]) : "")
                }
                var instance = FoundInstance(
                    container: "c\(number)", service: "s\(number)", made: number, labels: labels)
                if let address = SocketAddress("10.0.0.1:\(80 + number)") { instance.use([address], unless: nil) }
                instances.append(instance)
            }
        case 1: instances = [FoundInstance(file: "/d/a.yaml", service: "a", content: bytes)]
        case 2:
            let list = (try? JsonValue(bytes, rules: .lenient))?.elements ?? []
            instances = list.prefix(20).compactMap { DockerContainer($0) }.map {
                $0.instance(network: nil, onlyLabelled: false, leaving: false)
            }
        default:
            if let id = DockerEvent(bytes).stopping { require(DockerContainer.isIdentity(id), "a strange identity") }
            return
        }
        let result = finder.read(path: "main.yaml", finding: instances)
        guard let configuration = result.configuration else {
            return require(false, "labels made the file invalid: \(result.errors)")
        }
        require(
            configuration.listeners.count == 1 && configuration.credentials.isEmpty, "labels made more than services")
        for problem in configuration.found.problems {
            require(!problem.message.isEmpty && problem.message.utf8.count < 4000, "a strange message: \(problem)")
            require(!problem.message.contains("opened "), "a file was opened: \(problem)")
            require(!problem.message.contains("secret-of"), "a variable was read: \(problem)")
        }
        for address in configuration.found.addresses.values.flatMap(\.self) {
            require(!address.isMetadata && address.address != nil, "a strange address: \(address)")
            require(
                !(address.isLoopback && [8080, 9900].contains(address.port)), "the gateway's own address: \(address)")
        }
        require(configuration.updated(finding: instances) != nil, "the same services are other services")
    }
}
