import GatewayConfig
import HttpWare
import Importing

/// Files of other gateways: whatever they contain, the import ends, and what it writes is YAML with the keys of a configuration.
extension Fuzzing {
    public static func imports(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let formats = ImportFormat.allCases
        let format = formats[Int(choice) % formats.count]
        let source = ImportSource(name: "file", bytes: Array(wire))
        // The file includes itself and others that do.
        let files = ImportFiles(read: { $0.hasSuffix("none") ? nil : source.bytes }, list: { [$0, $0 + "2"] })
        let imported = format.translate([source], files: files, command: "import")
        let text = Array(imported.text.utf8)
        guard text.count < 4 << 20 else { return }
        let read = OptionsFile(
            path: "a.yaml", environment: [:], files: ConfigurationFiles(read: { _, _ in text }, list: { _ in [] }))
        require(
            read.errors.isEmpty || read.errors.allSatisfy { $0.message.contains("values") },
            "\(read.errors.first?.description ?? "")")
        let keys: Set = ["version", "listeners", "stores", "services", "chains", "routes"]
        require(read.root == nil || read.root?.entries?.allSatisfy { keys.contains($0.key) } == true, "another key")
    }
}
