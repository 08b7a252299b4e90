import DiskCaching
import GatewayConfig
import HttpCaching
import HttpWare
import HttpWareRedis
import GatewayWares

extension Fuzzing {
    /// The wares but one: an access log keeps a sink for every output that it was ever told, as long as the process lives.
    private static let wares = BuiltinWares.all.filter { $0.name != "accessLog" }

    /// A file is read or refused, and every refusal has its place. Each text behind a line `===` is another file.
    public static func configuration(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        let bytes = start.map { Array(UnsafeBufferPointer(start: $0, count: count)) } ?? []
        let parts = split(bytes)
        let files = ConfigurationFiles(
            read: { path, limit throws(ConfigurationFiles.Fault) in
                let content = path == "main.yaml" ? parts.main : parts.other
                if path.hasSuffix("none") { throw ConfigurationFiles.Fault("no such file", isAbsent: true) }
                if content.count > limit { throw ConfigurationFiles.Fault("is larger than \(limit >> 10) KiB") }
                return content
            },
            list: { pattern in pattern.contains("?") ? [] : ["a.yaml", "b.yaml"] })
        let reader = ConfigurationReader(
            wares: wares, stores: [DiskKind.self, RedisKind.self], environment: ["A": "1", "E": "${A}", "N": ""],
            files: files)
        let result = reader.read(path: "main.yaml")
        for error in result.errors {
            require(error.location.line > 0 && error.location.column > 0, "no place: \(error)")
            require(!error.message.isEmpty, "no message: \(error)")
            let text = error.description
            require(text.utf8.count < 4000, "too long: \(text)")
            require(text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7f }, "not one line: \(text)")
        }
        let isRefused = result.errors.contains { $0.severity == .error }
        require(isRefused == (result.configuration == nil), "\(result.errors)")
        require(reader.read(path: "main.yaml").errors == result.errors, "read again, it says something else")
    }

    private static func split(_ bytes: [UInt8]) -> (main: [UInt8], other: [UInt8]) {
        let mark = Array("\n===\n".utf8)
        guard let place = bytes.firstRange(of: mark) else { return (bytes, []) }
        return (Array(bytes[...place.lowerBound]), Array(bytes[place.upperBound...]))
    }
}
