import ArgumentParser

/// `httpware services`: the services of a running gateway, and the states of their endpoints.
struct ServicesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "services",
        abstract:
            "List the services of a running gateway: each endpoint's state, requests in progress, and last failure.")

    @OptionGroup var view: AdminView

    func run() throws {
        struct All: Decodable {
            let services: [ServiceLines]
            let splits: [SplitLines]
        }
        try view.show("/v1/services", as: All.self) { all in
            ServiceLines.table(all.services) + (all.splits.isEmpty ? [] : [""] + SplitLines.table(all.splits))
        }
    }
}
