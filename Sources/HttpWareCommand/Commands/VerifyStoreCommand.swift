import ArgumentParser
import HttpCaching

/// `httpware verify-store`: what a gateway calls to have a store's file looked through that was not closed. A damaged file may
/// end the process that reads it, which then is this one.
struct VerifyStoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify-store", abstract: "Look through the file of a disk store that nobody has open.",
        discussion: "Exit status: 0 it is intact, anything else it is not.", shouldDisplay: false)

    @Argument(help: "The store's folder.")
    var path: String

    func run() throws {
        if !DiskFolder.isIntact(path) { throw ExitCode(1) }
    }
}
