import ArgumentParser
import DiskCaching

/// `httpware verify-store`: a gateway runs it to check a store's file that was not closed. A damaged file may crash the process that
/// reads it, so another process than the gateway does.
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
