import ArgumentParser
import GatewayConfig
import Glibc
import HttpGateway
import HttpWare

/// Keeps a folder of service files up to date with what a source finds. Other files in the folder are left alone.
struct ServiceFiles {
    private let folder: String
    /// The first line of each file that this process writes, and may remove.
    private static let mark = "# Written by \(Program.name) discover: changes are lost.\n"

    init(folder: String) { self.folder = folder }

    /// Writes, until SIGTERM or SIGINT. Files stay, so that a gateway serves on while this process starts again.
    func keep(_ definition: DiscoverDefinition) throws {
        guard access(folder, W_OK) == 0 else {
            Terminal.error("\(Program.name) discover: \(folder): \(SystemError.text(of: errno).lowercased())")
            throw ExitCode(3)
        }
        let log = GatewayLog(LogDefinition())
        let reader = ConfigurationOption.reader
        let written = Written()
        try DiscoveryRun.run(definition, log: log) { instances in
            let found = reader.found(instances)
            for warning in found.warnings where written.told.insert(warning).inserted {
                log.write(.warning, "discover: \(warning.location): \(warning.message)")
            }
            written.told.formIntersection(found.warnings)
            write(found.files, log)
        }
        log.flush()
    }

    /// The warnings that were told; used on one thread only.
    private final class Written {
        var told: Set<ConfigError> = []
    }

    private func write(_ files: [String: String], _ log: GatewayLog) {
        for (name, text) in files.sorted(by: { $0.key < $1.key }) {
            let path = FilePath.joined(folder, "\(name).yaml")
            let content = Array((ServiceFiles.mark + text).utf8)
            let former = try? ConfigurationFiles.system.read(path, 1 << 20)
            if former == content { continue }
            if let former, !former.starts(with: ServiceFiles.mark.utf8) {
                log.write(.warning, "discover: \(path) is not a file of this process; it is left alone")
                continue
            }
            do throws(SystemError) {
                try replace(path, with: content)
            } catch {
                log.write(.error, "discover: \(path): \(error)")
            }
        }
        for path in ConfigurationFiles.system.list(FilePath.joined(folder, "*.yaml")) {
            let name = path.split(separator: "/").last.map { String($0.dropLast(".yaml".count)) } ?? ""
            guard files[name] == nil, let content = try? ConfigurationFiles.system.read(path, 1 << 20),
                content.starts(with: ServiceFiles.mark.utf8)
            else { continue }
            unlink(path)
        }
    }

    /// Writes the file under another name and renames it, so that no reader sees half of it.
    private func replace(_ path: String, with content: [UInt8]) throws(SystemError) {
        let fresh = FilePath.joined(folder, ".discover.\(getpid()).tmp")
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard descriptor >= 0 else { throw SystemError("open") }
        var left = content[...]
        while !left.isEmpty {
            let count = left.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let error = SystemError("write")
                close(descriptor)
                unlink(fresh)
                throw error
            }
            left = left.dropFirst(count)
        }
        close(descriptor)
        guard rename(fresh, path) == 0 else {
            let error = SystemError("rename")
            unlink(fresh)
            throw error
        }
    }
}
