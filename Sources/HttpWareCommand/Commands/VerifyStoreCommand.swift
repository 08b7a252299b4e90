import ArgumentParser
import DiskCaching

/// `httpware verify-store`: checks the file of a store that was not closed. The gateway runs it as a separate process, because a
/// damaged file may crash the process that reads it.
struct VerifyStoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify-store", abstract: "Verify the file of a disk store that is not open.",
        discussion: "Exit status: 0 if it is intact, otherwise another.", shouldDisplay: false)

    @Argument(help: "The store's folder.")
    var path: String

    func run() throws {
        if !DiskFolder.isIntact(path) { throw ExitCode(1) }
    }
}
