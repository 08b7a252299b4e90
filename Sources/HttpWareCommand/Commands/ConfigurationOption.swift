import ArgumentParser
import Foundation
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare
import Wares

/// `-c FILE`, or else a file at one of the usual paths.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help:
            "The configuration file; - reads standard input. Default: httpware.yaml, else /etc/httpware/httpware.yaml.")
    var path: String?

    private static let usualPaths = ["httpware.yaml", "/etc/httpware/httpware.yaml"]

    /// True if there is a file at one of the usual paths.
    var isThere: Bool { ConfigurationOption.usualPaths.contains { FileManager.default.fileExists(atPath: $0) } }

    /// The path of the file; ends the program if there is none.
    func file() throws -> String {
        if let path { return path }
        guard let found = ConfigurationOption.usualPaths.first(where: { FileManager.default.fileExists(atPath: $0) })
        else {
            Terminal.error(
                "no configuration: neither httpware.yaml nor /etc/httpware/httpware.yaml exists; name a file with -c")
            throw ExitCode(3)
        }
        return found
    }

    /// The reader of the file.
    static let reader = ConfigurationReader(
        wares: BuiltinWares.all, stores: GatewayStores.all, environment: ProcessInfo.processInfo.environment)

    /// Reads and checks the file; ends the program if it cannot be read.
    func read() throws -> ConfigurationReader.Result {
        try ConfigurationOption.readable(ConfigurationOption.reader.read(path: try readableFile()))
    }

    /// The result of reading. If the file itself cannot be read, the program ends.
    static func readable(_ result: ConfigurationReader.Result) throws -> ConfigurationReader.Result {
        guard result.isUnreadable else { return result }
        for error in result.errors { Terminal.error(error.description) }
        throw ExitCode(3)
    }

    /// The path of the file; ends the program if it cannot be read.
    func readableFile() throws -> String {
        let file = try file()
        if file != "-", !FileManager.default.isReadableFile(atPath: file) {
            Terminal.error("\(file): cannot be read; check that it exists and that you may read it")
            throw ExitCode(3)
        }
        return file
    }
}
