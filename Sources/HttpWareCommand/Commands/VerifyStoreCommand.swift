import ArgumentParser
import DiskCaching

/// `httpware verify-store`: what a gateway calls to have a store's file looked through that was not closed. A damaged file may
/// end the process that reads it, which then is this one.
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
