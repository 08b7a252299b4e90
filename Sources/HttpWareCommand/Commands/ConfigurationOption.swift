import ArgumentParser
import Foundation
import GatewayConfig
import Wares

/// `-c FILE`, and how a file is found without it.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help:
            "The configuration file; - reads standard input. Default: httpware.yaml, else /etc/httpware/httpware.yaml.")
    var path: String?

    private static let usualPaths = ["httpware.yaml", "/etc/httpware/httpware.yaml"]

    /// The file that is meant; ends the program when there is none.
    func file() throws -> String {
        if let path { return path }
        guard let found = ConfigurationOption.usualPaths.first(where: { FileManager.default.fileExists(atPath: $0) })
        else {
            Terminal.error(
                "no configuration: neither httpware.yaml nor /etc/httpware/httpware.yaml is there; name a file with -c")
            throw ExitCode(3)
        }
        return found
    }

    /// What reads the file.
    static let reader = ConfigurationReader(wares: BuiltinWares.all, environment: ProcessInfo.processInfo.environment)

    /// Reads and checks the file.
    func read() throws -> ConfigurationReader.Result {
        ConfigurationOption.reader.read(path: try readableFile())
    }

    /// The file that is meant; ends the program when it cannot be read.
    func readableFile() throws -> String {
        let file = try file()
        if file != "-", !FileManager.default.isReadableFile(atPath: file) {
            Terminal.error("\(file): cannot be read; check that it is there and that you may read it")
            throw ExitCode(3)
        }
        return file
    }
}

/// Standard error, for people.
enum Terminal {
    static func error(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }
}
