import ArgumentParser
import Foundation
import GatewayConfig
import Glibc
import Wares

/// `-c FILE`, and how a file is found without it.
struct ConfigurationOption: ParsableArguments {
    @Option(
        name: [.customShort("c"), .customLong("config")],
        help:
            "The configuration file; - reads standard input. Default: httpware.yaml, else /etc/httpware/httpware.yaml.")
    var path: String?

    private static let usualPaths = ["httpware.yaml", "/etc/httpware/httpware.yaml"]

    /// Whether there is a file without `-c`.
    var isThere: Bool { ConfigurationOption.usualPaths.contains { FileManager.default.fileExists(atPath: $0) } }

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

/// Standard output and standard error.
enum Terminal {
    /// A line for people.
    static func error(_ text: String) { write(text + "\n", to: STDERR_FILENO) }

    /// A line of the command's result; false when nobody reads any more.
    @discardableResult
    static func print(_ text: String, end: String = "\n") -> Bool { write(text + end, to: STDOUT_FILENO) }

    /// In one piece, so that the lines of several threads do not mix.
    @discardableResult
    private static func write(_ text: String, to descriptor: Int32) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while let start = rest.baseAddress, !rest.isEmpty {
                let count = Glibc.write(descriptor, start, rest.count)
                if count > 0 {
                    rest = UnsafeRawBufferPointer(rebasing: rest[count...])
                } else if errno == EAGAIN {
                    var wanted = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&wanted, 1, -1)
                } else if errno != EINTR {
                    return false
                }
            }
            return true
        }
    }
}
