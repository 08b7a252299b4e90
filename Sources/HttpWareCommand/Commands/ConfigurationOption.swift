import ArgumentParser
import FoundationEssentials
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare

/// `-c FILE`, or else a file at one of the usual paths.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help:
            "The configuration file; - reads standard input. Default: httpware.yaml, else /etc/httpware/httpware.yaml.",
        completion: ConfigurationOption.completion)
    var path: String?

    static let completion = CompletionKind.file(extensions: ["yaml", "yml"])

    private static let usualPaths = ["httpware.yaml", "/etc/httpware/httpware.yaml"]

    /// True if there is a file at one of the usual paths.
    var isThere: Bool { ConfigurationOption.usualPaths.contains { FileManager.default.fileExists(atPath: $0) } }

    /// The option with a file that was named without -c.
    func or(_ named: String?) throws -> ConfigurationOption {
        guard let named else { return self }
        guard path == nil else { throw ValidationError("two files are named: \(named), and another with -c") }
        var option = self
        option.path = named
        return option
    }

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
        wares: Program.allWares, stores: GatewayStores.all, environment: ProcessInfo.processInfo.environment)

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
        if file != "-", let fault = ConfigurationOption.fault(of: file) {
            Terminal.error("\(file): \(fault)")
            throw ExitCode(3)
        }
        return file
    }

    /// Why a file cannot be read; `nil` if it can.
    private static func fault(of file: String) -> String? {
        // The file is not opened: if it is a pipe, its writer would mistake that for the reader.
        guard access(file, R_OK) != 0 else { return nil }
        return switch errno {
        case ENOENT: "does not exist; \(Program.name) init writes one"
        case EACCES: "you have no permission to read it"
        case let code: "cannot be read: \(SystemError.text(of: code))"
        }
    }
}
