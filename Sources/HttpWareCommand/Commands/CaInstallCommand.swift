import ArgumentParser
import FoundationEssentials
import HttpWare

/// The stores that `ca install` and `ca uninstall` change.
struct TrustStoreOptions: ParsableArguments {
    @Option(
        name: .customLong("store"),
        help: "Only this kind of store: system, nss, java, macos, ios or android; can be repeated.")
    var kinds: [TrustStoreKind] = []
    /// Another root of the file system, for tests and images.
    @Option(help: .hidden)
    var root = "/"

    func stores(of authority: CertificateAuthority, in folder: String) -> TrustStores {
        TrustStores(
            authority: authority, file: FilePath.joined(folder, CertificateAuthority.certificateFile),
            user: ProcessInfo.processInfo.environment, root: root)
    }
}

/// The output: one line for each store that was changed, or that could not be changed.
private struct StoreLines {
    var done: [String] = []
    var left: [String] = []

    /// Changes every store of the chosen kinds, even if one of them fails. A kind that is not available has a line only if
    /// `tells` returns true for it. `change` returns false if there was nothing to change.
    mutating func visit(
        _ stores: TrustStores, _ options: TrustStoreOptions, tells: (TrustStoreKind) -> Bool,
        change: (TrustStore) throws(TrustProblem) -> Bool
    ) {
        for kind in TrustStoreKind.here where options.kinds.isEmpty || options.kinds.contains(kind) {
            let found = stores.stores(kind)
            if let problem = found.problem, tells(kind) { left.append("\(kind.rawValue): \(problem)") }
            for store in found.stores {
                do throws(TrustProblem) {
                    if try change(store) { done.append(store.label) }
                } catch {
                    left.append("\(store.label): \(error.text)")
                }
            }
        }
    }

    /// Prints the lines, the changed stores first.
    func finish(_ verb: String) throws {
        for line in done { try Terminal.result("\(verb): \(line)") }
        for line in left { try Terminal.result("not \(verb): \(line)") }
    }
}

struct CaInstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install", abstract: "Let the programs of this machine trust the authority.",
        discussion: """
            Adds the certificate to the store of the system, to the NSS databases of Chromium and of every Firefox profile, \
            and to the trust store of the JDK. A store that is missing or fails does not stop the others; the last lines say \
            what was done and what was not. The commands for macOS, iOS and Android are printed.

            The exit status is 0 if at least one store trusts the authority and none that was named by --store failed.
            """)

    @OptionGroup var folder: CaFolder
    @OptionGroup var options: TrustStoreOptions

    func run() throws {
        let stores = options.stores(of: try folder.read(), in: folder.path)
        var lines = StoreLines()
        lines.visit(stores, options) { _ in
            true
        } change: { (store) throws(TrustProblem) in
            try store.install()
            return true
        }
        try lines.finish("installed")
        let others = TrustStoreKind.allCases.filter { !TrustStoreKind.here.contains($0) }
        for kind in others where options.kinds.isEmpty || options.kinds.contains(kind) {
            try Terminal.result("\(kind.rawValue), by these commands:")
            for command in stores.commands(kind) { try Terminal.result("  \(command)") }
        }
        let isAskedFor = !options.kinds.isEmpty
        let needsHere = options.kinds.isEmpty || options.kinds.contains { TrustStoreKind.here.contains($0) }
        if isAskedFor && !lines.left.isEmpty || needsHere && lines.done.isEmpty { throw ExitCode(1) }
    }
}

struct CaUninstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Remove the authority from the stores that \(Program.name) ca install changes.",
        discussion: "The authority itself stays in its folder. The exit status is 1 if a store still trusts it.")

    @OptionGroup var folder: CaFolder
    @OptionGroup var options: TrustStoreOptions

    func run() throws {
        let stores = options.stores(of: try folder.read(), in: folder.path)
        var lines = StoreLines()
        // If the tool is missing, certificates may be left in the store; if there is no store, none are.
        lines.visit(stores, options) {
            options.kinds.contains($0)
        } change: { (store) throws(TrustProblem) in
            try store.uninstall()
        }
        if lines.done.isEmpty && lines.left.isEmpty { try Terminal.result("the authority is in no store") }
        try lines.finish("removed")
        if !lines.left.isEmpty { throw ExitCode(1) }
    }
}
