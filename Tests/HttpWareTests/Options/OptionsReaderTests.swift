import HttpWare
import Testing

@Suite struct OptionsReaderTests {
    private enum Style: String, OptionWord { case short, long }

    private struct Options {
        var max = ByteCount.mebibytes(10)
        var total: Duration?
        var style = Style.short
        var names: [String] = ["a"]
        var statuses: StatusSet = [401]
        var set: OptionMap<FieldName, [String]> = [:]
        var wanted: OptionMap<FieldName, Pattern?> = [:]
        var strip = ""
        var steps: [HttpStatus] = []
        var key: Secret?

        mutating func read(_ options: inout OptionsReader) {
            options.read("max", into: &max, in: .bytes(1) ... .gibibytes(1), doc: "the most content")
            options.read("total", into: &total)
            options.read("style", into: &style)
            options.read("names", into: &names)
            options.read("statuses", into: &statuses)
            options.read("set", into: &set)
            options.read("wanted", intoNames: &wanted)
            options.read("path") { $0.read("strip", into: &strip) }
            options.readEach("sequence") { options in
                var status = HttpStatus.ok
                options.read("status", into: &status)
                steps.append(status)
            }
            options.readSecret("key", into: &key)
            options.require("max")
        }
    }

    private func read(_ node: ConfigNode) -> (Options, [String]) {
        var options = Options()
        var reader = OptionsReader(node, keyPath: "ware")
        options.read(&reader)
        return (options, reader.finish().map { "\($0.keyPath): \($0.message)" })
    }

    @Test func `values are read by their types`() {
        let (options, errors) = read([
            "max": "1KiB", "total": "5s", "style": "long", "names": "b", "statuses": ["5xx", 404],
            "set": ["X-A": "1", "X-B": ["2", "3"]], "wanted": ["Accept", "Host"], "path": ["strip": "/api"],
            "sequence": [["status": 500], ["status": 200]], "key": "hunter2",
        ])
        #expect(errors == [])
        #expect(options.max == .kibibytes(1) && options.total == .seconds(5) && options.style == .long)
        #expect(options.names == ["b"] && options.statuses.description == "404, 5xx")
        #expect(options.set.map(\.key) == ["X-A", "X-B"] && options.set.map(\.value) == [["1"], ["2", "3"]])
        #expect(options.wanted.map(\.key) == ["Accept", "Host"] && options.wanted.allSatisfy { $0.value == nil })
        #expect(options.strip == "/api" && options.steps.map(\.code) == [500, 200])
        #expect(options.key?.revealed == "hunter2")
    }

    @Test func `every mistake is recorded, and the defaults stay`() {
        let (options, errors) = read([
            "max": "2GiB", "total": ["5s"], "style": "lnog", "names": ["a": "b"], "statuses": ["999", "200"],
            "set": ["a b": "1"], "wanted": ["Accept": "("], "path": "x", "sequence": [["stat": 1]], "kex": "x",
        ])
        #expect(
            errors == [
                "ware.max: \"2GiB\" is too large; write 1B to 1GiB",
                "ware.total: a list is not a duration",
                "ware.style: \"lnog\" is not an allowed value; write short or long; did you mean \"long\"?",
                "ware.names: a map is not a list of text; write [first, second]",
                "ware.statuses[0]: \"999\" is not a set of statuses; write a status from 100 to 599, a class such as 5xx,"
                    + " or a range such as 500-599",
                "ware.set.a b: \"a b\" is not a field name; write a token such as X-Request-Id",
                "ware.wanted.Accept: \"(\" is not a regular expression; missing closing parenthesis at character 2",
                "ware.path: \"x\" is not a map of options; write key: value, such as strip: …",
                "ware.sequence[0].stat: unknown option; write status",
                "ware.kex: unknown option; did you mean \"key\"?",
            ])
        #expect(
            options.max == .mebibytes(10) && options.total == nil && options.style == .short && options.names == ["a"])
    }

    @Test func `nothing where a list or map is expected is an empty one`() {
        let nothing = ConfigNode(.scalar("", isQuoted: false))
        let (options, errors) = read([
            "max": "1B", "names": nothing, "set": nothing, "path": nothing, "sequence": nothing, "statuses": nothing,
        ])
        #expect(errors == [])
        #expect(options.names == [] && options.set.isEmpty && options.statuses.isEmpty && options.steps.isEmpty)
    }

    @Test(arguments: ["names", "statuses", "wanted"])
    func `a boolean is not a list`(key: String) {
        for text in ["true", "false", "True"] {
            for node in [
                ConfigNode(.scalar(text, isQuoted: false)), ConfigNode(.list([.init(.scalar(text, isQuoted: false))])),
            ] {
                let map = ConfigNode(
                    .map([
                        .init(key: "max", location: .code, value: "1KiB"),
                        .init(key: key, location: .code, value: node),
                    ]))
                #expect(read(map).1.contains { $0.contains("\(text) is not a") }, "\(key): \(text)")
            }
        }
        #expect(read(["max": "1KiB", "names": ["true"]]).1.isEmpty)
    }

    @Test func `a required option that is absent is an error`() {
        #expect(read([:]).1 == ["ware.max: is missing, and there is no default"])
    }

    @Test(
        arguments: [
            (["maximum": "1B"], ["ware.maximum: unknown option; max is missing"]),
            (["mas": "1B"], ["ware.mas: unknown option; did you mean \"max\"?"]),
            (
                ["maximum": "1B", "least": "1B"],
                [
                    "ware.maximum: unknown option", "ware.least: unknown option",
                    "ware.max: is missing, and there is no default",
                ]
            ),
        ] as [(ConfigNode, [String])])
    func `one unknown option and one that is missing are one error`(node: ConfigNode, errors: [String]) {
        #expect(read(node).1 == errors)
    }

    @Test(
        arguments: [
            ([:], ["ware: changes nothing", "ware: is doubtful"]),
            (["set": ["X-A": ["b", "c"]]], ["ware.set.X-A: a list is not a text"]),
            (["st": ["X-A": "b"]], ["ware.st: unknown option; did you mean \"set\"?"]),
            ("X-A", ["ware: \"X-A\" is not a map of options; write key: value, such as set: …"]),
        ] as [(ConfigNode, [String])])
    func `the options as a whole are judged only if nothing else is wrong in them`(node: ConfigNode, errors: [String]) {
        var reader = OptionsReader(node, keyPath: "ware")
        var set: OptionMap<FieldName, String> = [:]
        reader.read("set", into: &set)
        reader.fail("changes nothing")
        reader.warn("is doubtful")
        #expect(reader.hasErrors)
        #expect(reader.finish().map { "\($0.keyPath): \($0.message)" } == errors)
    }

    @Test func `a placeholder without quotes is a map, and the error shows the quotes`() {
        var reader = OptionsReader(["to": ["client.ip": ConfigNode(.scalar("", isQuoted: false))]], keyPath: "ware")
        var to: Template?
        reader.read("to", into: &to)
        #expect(reader.finish().map(\.message) == ["a map is not a template; quote it: \"{client.ip}\""])
    }

    @Test func `the same code describes the options`() {
        var options = Options()
        var reader = OptionsReader.describing("ware")
        options.read(&reader)
        #expect(reader.finish() == [])
        #expect(
            reader.described.map(\.key) == [
                "max", "total", "style", "names", "statuses", "set", "wanted", "path", "path.strip", "sequence",
                "sequence[].status", "key",
            ])
        let max = reader.described[0]
        #expect(max.type == "byte count" && max.defaultText == "10MiB" && max.allowed == "1B to 1GiB" && max.isRequired)
        #expect(max.doc == "the most content")
        #expect(reader.described[2].type == "short | long" && reader.described[3].defaultText == "[a]")
        #expect(reader.described[11].isSecret)
    }

    @Test func `a secret is shown by nothing`() {
        let secret = Secret("hunter2")
        var dumped = ""
        dump(secret, to: &dumped)
        #expect(
            "\(secret) \(String(reflecting: secret)) \(secret.optionText) \(dumped) \([secret])".contains("hunter2")
                == false)
        let node: ConfigNode = ["max": ConfigNode(.scalar("hunter2", isQuoted: false), isSecret: true)]
        #expect(read(node).1 == ["ware.max: the secret value is not a byte count"])
    }

    @Test func `an error is shown as file, line, column, severity, key path and message`() {
        let place = SourceLocation(file: "conf/httpware.yaml", line: 14, column: 12)
        #expect(
            ConfigError(at: place, keyPath: "bodyLimit.max", message: "is wrong").description
                == "conf/httpware.yaml:14:12: error: bodyLimit.max: is wrong")
        #expect(
            ConfigError(at: place, severity: .warning, keyPath: "", message: "is odd").description
                == "conf/httpware.yaml:14:12: warning: is odd")
    }

    @Test func `a quoted value stays on one line and short`() {
        #expect("a\"b\n\u{1B}".quotedForErrors == #""a\"b\n\u{1b}""#)
        #expect(String(repeating: "x", count: 1000).quotedForErrors.count < 100)
    }
}
