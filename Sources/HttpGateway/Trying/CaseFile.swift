public import GatewayConfig
public import HttpWare

/// A file of cases for a configuration: what `httpware test` reads.
public struct CaseFile: Sendable {
    /// The cases, in file order.
    public var cases: [FileCase]

    /// The result of reading.
    public struct Result: Sendable {
        /// The file; `nil` if there is any error. Warnings are allowed.
        public var file: CaseFile?
        /// The errors and warnings, by line and column.
        public var errors: [ConfigError]
        /// Whether the file itself cannot be read, whatever its content.
        public var isUnreadable: Bool
        /// Whether there is no such file.
        public var isAbsent: Bool
    }

    /// The name of the file with the cases of a configuration: `gateway.test.yaml` for `gateway.yaml`.
    public static func path(beside configuration: String) -> String {
        for ending in [".yaml", ".yml"] where configuration.hasSuffix(ending) {
            return configuration.dropLast(ending.count) + ".test" + ending
        }
        return configuration + ".test.yaml"
    }

    /// The configuration that a file with cases belongs to by its name; `nil` if the name does not end with `.test.yaml`.
    public static func configuration(of path: String) -> String? {
        for ending in [".yaml", ".yml"] where path.hasSuffix(".test" + ending) {
            return path.dropLast(ending.count + 5) + ending
        }
        return nil
    }

    /// Reads a file. `environment` has the variables for `${VAR}`.
    public static func read(
        path: String, environment: [String: String], files: ConfigurationFiles = .system
    ) -> Result {
        let text = OptionsFile(path: path, environment: environment, files: files)
        var result = Result(
            file: nil, errors: text.errors, isUnreadable: text.isUnreadable, isAbsent: text.isAbsent)
        guard var root = text.root else { return result }
        // Keys that begin with `x-` hold values for anchors, as in a configuration.
        if case .map(let entries) = root.content { root.content = .map(entries.filter { !$0.key.hasPrefix("x-") }) }
        var options = OptionsReader(root, keyPath: "")
        let file = CaseFile(options: &options)
        var diagnostics = Diagnostics()
        diagnostics.append(text.errors)
        diagnostics.append(options.finish())
        result.errors = diagnostics.sorted
        if !diagnostics.hasErrors { result.file = file }
        return result
    }

    /// The JSON Schema (2020-12) of files of cases, for editors.
    public static var schema: ConfigNode {
        ConfigurationSchema.schema(title: "httpware cases") { _ = CaseFile(options: &$0) }
    }

    /// The maximum number of cases in a file, and of steps in a case.
    private static let most = 10_000

    /// Reads the options of a file.
    public init(options: inout OptionsReader) {
        var cases: [FileCase] = []
        var names: [String: SourceLocation] = [:]
        options.readEach("cases", doc: "each sends requests through the configuration, in order") { options in
            guard cases.count < CaseFile.most || options.isDescribing else { return }
            let read = FileCase(options: &options)
            if let former = names.updateValue(read.location, forKey: read.name), !read.name.isEmpty {
                options.fail(at: "name", "is also the name of the case at \(former)")
            }
            cases.append(read)
        }
        options.require("cases")
        options.refuseEmpty("cases", "write a case with a name, a request and expect")
        if cases.count == CaseFile.most {
            options.fail(at: "cases", "has \(CaseFile.most) cases or more; write several files")
        }
        self.cases = cases
    }
}

/// A case: requests in order, each with what is expected of it. The state that the configuration keeps, such as stored responses, lasts
/// for one case.
public struct FileCase: Sendable {
    /// The name, which is different for each case.
    public var name = ""
    /// The place of the case.
    public var location: SourceLocation
    /// The wall clock time at which it begins.
    public var time = FileCase.usualTime
    /// The listener that receives the requests; `nil` for the one that fits the URL.
    public var listener: String?
    /// The client's address.
    public var client = "127.0.0.1"
    /// The number that all random values follow from.
    public var seed = 1
    /// The answers to side calls.
    public var calls: [CallAnswer] = []
    /// The steps, in order.
    public var steps: [CaseStep] = []

    /// 2026-01-01T00:00:00Z.
    public static let usualTime = WallTime(seconds: 1_767_225_600)
    /// The times at which a case may begin: 1970 to 2199.
    private static let times = WallTime(seconds: 0)...WallTime(seconds: 7_258_118_399)
    private static let mostSteps = 100
    private static let ofStep = ["after", "request", "upstream", "expect"]

    init(options: inout OptionsReader) {
        location = options.location
        options.read("name", into: &name, doc: "different for each case")
        options.require("name")
        if options.isGiven("name"), name.isEmpty {
            options.fail(at: "name", "is empty; write what the gateway does in this case")
        }
        var time: String?
        options.read("time", into: &time, doc: "the wall clock time at which it begins; default 2026-01-01T00:00:00Z")
        if let time {
            if let read = WallTime(iso8601: time), FileCase.times.contains(read) {
                self.time = read
            } else {
                options.fail(
                    at: "time", "\(time.quotedForErrors) is not a time from 1970 to 2199, such as 2026-01-01T00:00:00Z")
            }
        }
        options.read("listener", into: &listener, doc: "the listener that receives the requests")
        FileCase.readClient(into: &client, &options)
        options.read("seed", into: &seed, in: 1...1_000_000, doc: "the number that all random values follow from")
        var calls: [CallAnswer] = []
        options.readEach("calls", doc: "the answers to calls of the gateway's own") { options in
            calls.append(CallAnswer(options: &options))
        }
        self.calls = calls
        let only = CaseStep(options: &options)
        var steps: [CaseStep] = []
        options.readEach("steps", doc: "several requests, in order") { options in
            guard steps.count <= FileCase.mostSteps || options.isDescribing else { return }
            var step = CaseStep(options: &options)
            options.read("listener", into: &step.listener, doc: "in place of the case's listener")
            FileCase.readClient(into: &step.client, &options)
            step.check(&options)
            steps.append(step)
        }
        if options.isGiven("steps") {
            for key in FileCase.ofStep where options.isGiven(key) {
                options.fail(at: key, "is given beside steps; write it in a step")
            }
            options.refuseEmpty("steps", "write a step with a request and expect")
            if steps.count > FileCase.mostSteps {
                options.fail(at: "steps", "has more than \(FileCase.mostSteps) steps; write several cases")
            }
            self.steps = steps
        } else {
            options.require(anyOf: ["request", "steps"])
            if options.isGiven("request") { only.check(&options) }
            self.steps = [only]
        }
    }

    private static func readClient(into client: inout String, _ options: inout OptionsReader) {
        options.read("client", into: &client, doc: "the client's address; default 127.0.0.1")
        checkClient(client, &options)
    }

    private static func readClient(into client: inout String?, _ options: inout OptionsReader) {
        options.read("client", into: &client, doc: "in place of the case's client")
        if let client { checkClient(client, &options) }
    }

    private static func checkClient(_ client: String, _ options: inout OptionsReader) {
        guard IPAddress(client) == nil else { return }
        options.fail(at: "client", "\(client.quotedForErrors) is not an IP address")
    }
}

/// A step of a case: time passes, a request is sent, and its results are compared.
public struct CaseStep: Sendable {
    /// The time that passes first.
    public var after = Duration.zero
    /// The request; `nil` if only time passes.
    public var request: CaseRequest?
    /// The answers of origin servers, in order. The last one is repeated if `repeatsAnswers`.
    public var answers: [OriginAnswer] = []
    /// Whether the only answer counts for each request: a single answer, not a list.
    public var repeatsAnswers = true
    /// The expected results.
    public var expect = CaseExpectation()
    /// In place of those of the case.
    public var listener: String?
    public var client: String?

    /// The maximum time of one step: with 100 steps, a clock of nanoseconds cannot overflow.
    static let longest = Duration.seconds(400 * 86_400)

    init(options: inout OptionsReader) {
        options.read("after", into: &after, in: .zero...CaseStep.longest, doc: "the time that passes first")
        let isRequest = options.isGiven("request") || options.isDescribing
        var request = CaseRequest(location: options.location(of: "request"))
        options.read("request", doc: "the request of the client") { request.read(&$0) }
        if isRequest { self.request = request }
        repeatsAnswers = !options.isList("upstream")
        var answers: [OriginAnswer] = []
        options.readEach("upstream", doc: "the answer of the origin server, or a list of answers") { options in
            answers.append(OriginAnswer(options: &options, ofService: true))
        }
        self.answers = answers
        var expect = CaseExpectation()
        options.read("expect", doc: "the expected results") { expect.read(&$0) }
        self.expect = expect
    }

    /// Reports keys that have no effect.
    func check(_ options: inout OptionsReader) {
        if request == nil {
            for key in ["upstream", "expect"] where options.isGiven(key) {
                options.fail(at: key, "has no effect without request")
            }
            options.require(anyOf: ["request", "after"])
        }
    }
}
