import ArgumentParser

/// `httpware services`: the services of a running gateway, and how their endpoints are.
struct ServicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "services",
        abstract:
            "List the services of a running gateway: each endpoint's state, requests in progress, and last failure.")

    @OptionGroup var view: AdminView

    func run() throws {
        struct All: Decodable { let services: [ServiceLines] }
        try view.show("/v1/services", as: All.self) { ServiceLines.table($0.services) }
    }
}
