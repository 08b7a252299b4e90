public import HttpCaching
public import HttpWare

/// Reads configuration files and checks them.
///
/// ```swift
/// let reader = ConfigurationReader(wares: BuiltinWares.all, stores: GatewayStores.all, environment: environment)
/// let result = reader.read(path: "conf/httpware.yaml")
/// for error in result.errors { print(error) }
/// guard let configuration = result.configuration else { exit(1) }
/// ```
public struct ConfigurationReader: Sendable {
    /// The result of reading.
    public struct Result: Sendable {
        /// The configuration; `nil` if there is any error. Warnings are allowed.
        public var configuration: GatewayConfiguration?
        /// The errors and warnings, by file, line and column.
        public var errors: [ConfigError]
        /// Every file that was read or could not be read, including secrets: the files to watch.
        public var paths: [String]
        /// The patterns of `include`. A new file that matches one must be read, too.
        public var patterns: [String]
        /// Whether the file itself cannot be read, whatever its content; `errors` says why.
        public var isUnreadable = false
    }

    private let wares: [any ConfigurableWare.Type]
    private let stores: [any StoreKind.Type]
    private let environment: [String: String]
    private let files: ConfigurationFiles
    private let isForClient: Bool

    /// Makes a reader with the wares that a file can use, the kinds of stores besides `memory`, and the variables for
    /// `${VAR}`. A file for a client needs no listener, and may contain more than the client uses.
    public init(
        wares: [any ConfigurableWare.Type], stores: [any StoreKind.Type] = [], environment: [String: String],
        files: ConfigurationFiles = .system, isForClient: Bool = false
    ) {
        self.isForClient = isForClient
        self.wares = wares
        self.stores = stores
        self.environment = environment
        self.files = files
    }

    /// Reads a file and everything that it includes; `-` is standard input. If wares of `former`, the running
    /// configuration, would be built the same, they are kept with their state: the same chain, the same label (else
    /// name and position), and the same options.
    ///
    /// `found` are the services that a source found, if the file looks for any.
    public func read(
        path: String, keeping former: GatewayConfiguration? = nil, finding found: [FoundInstance] = []
    ) -> Result {
        files.isOfMachine ? readTree(path, former, found) : FileGate.whileClosed { readTree(path, former, found) }
    }

    /// Makes the running configuration again with other found services. No configuration file is read, only the files that options name.
    public func read(again former: GatewayConfiguration, finding found: [FoundInstance]) -> Result {
        var (configuration, errors, paths) = check(
            former.writtenInFiles, at: SourceLocation(file: "", line: 1, column: 1), former, found)
        configuration?.fileSecrets = former.fileSecrets
        if errors.hasErrors { configuration = nil }
        return Result(configuration: configuration, errors: errors.sorted, paths: paths, patterns: [])
    }

    /// The services that were found, without a configuration that could use them: their labels are read, but not their wares' options.
    public func found(_ instances: [FoundInstance]) -> FoundServices {
        FoundServices(instances, among: [], isPostware: { _ in false })
    }

    /// Checks the entries of the files, with the services that were found. Found services with mistakes are left out.
    private func check(
        _ entries: [ConfigNode.Entry], at start: SourceLocation, _ former: GatewayConfiguration?,
        _ instances: [FoundInstance]
    ) -> (configuration: GatewayConfiguration?, errors: Diagnostics, files: [String]) {
        let registry = WareRegistry(wares)
        let looks = entries.contains { $0.key == "discover" } && !isForClient
        var found = FoundServices(looks ? instances : [], among: entries, keeping: former?.found) { name in
            registry[name].map { WareRegistry.side($0) == .postware } ?? false
        }
        while true {
            var checker = ConfigurationChecker(
                registry: registry, stores: stores, keeping: former, files: files, isForClient: isForClient,
                isGuest: found.isPlace)
            var configuration = checker.check(entries + found.entries, at: start)
            let errors = checker.diagnostics.all.filter { $0.severity == .error }
            if found.leaveOut(errors) { continue }
            if !errors.isEmpty, !found.entries.isEmpty {
                // Perhaps their number is the mistake: then the file alone has none.
                found.leaveOutAll(because: "is left out: \(errors[0])")
                continue
            }
            var diagnostics = Diagnostics()
            diagnostics.append(found.taking(checker.diagnostics.all))
            found.refuse(configuration.listeners.map(\.bind) + (configuration.admin.map { [$0.bind] } ?? []))
            configuration.found = found
            configuration.writtenInFiles = entries
            return (configuration, diagnostics, checker.files)
        }
    }

    private func readTree(_ path: String, _ former: GatewayConfiguration?, _ found: [FoundInstance]) -> Result {
        let tree = SourceTree(path, environment: environment, files: files)
        guard !tree.isBroken else {
            return Result(
                configuration: nil, errors: tree.diagnostics.sorted, paths: tree.paths, patterns: tree.patterns,
                isUnreadable: tree.isUnreadable)
        }
        var (configuration, checked, paths) = check(
            tree.entries, at: SourceLocation(file: path, line: 1, column: 1), former, found)
        configuration?.fileSecrets = tree.secrets
        var diagnostics = tree.diagnostics
        // A text that could not be interpolated is one error, not two.
        let places = Set(diagnostics.all.map(\.location))
        let isWhole = !diagnostics.hasErrors
        diagnostics.append(
            checked.all.filter { $0.severity == .warning ? isWhole : !places.contains($0.location) })
        return Result(
            configuration: diagnostics.hasErrors ? nil : configuration, errors: diagnostics.sorted,
            paths: tree.paths + paths, patterns: tree.patterns)
    }
}
