import ArgumentParser
import Foundation
import HttpWare

/// `httpware health`: whether a gateway is ready, for container health checks without a shell.
struct HealthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health", abstract: "Ask a running gateway whether it is ready.",
        discussion: "Exit status: 0 ready, 1 starting or draining, 3 nobody answers.")

    @OptionGroup var admin: AdminOption

    func run() throws {
        let target = try admin.target()
        let status: Int
        let content: [UInt8]
        do {
            (status, content) = try AdminCall(address: target.address, token: target.token).get("/readyz")
        } catch {
            Terminal.error("\(error)")
            throw ExitCode(3)
        }
        let word = status == 200 || status == 503 ? String(decoding: content, as: UTF8.self) : "status \(status)\n"
        print(word, terminator: "")
        if status != 200 { throw ExitCode(1) }
    }
}
