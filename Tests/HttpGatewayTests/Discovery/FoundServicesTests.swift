import GatewayWares
import HttpWare
import Testing

@testable import GatewayConfig
@testable import HttpGateway

/// Labels and service files, and the services that become of them.
@Suite struct FoundServicesTests {
    private static let file = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:8080" } }
        admin: { bind: "127.0.0.1:9900", token: none }
        discover: { docker: {}, chains: [limits] }
        credentials: { upstream: { grant: static, value: 0123456789abcdef } }
        chains:
          limits: { middlewares: [bodyLimit] }
          tokens: { middlewares: [{ tokenInject: { credential: upstream } }] }
        """

    private let reader: ConfigurationReader

    init() { reader = Self.reader(Self.file) }

    private static func reader(_ text: String) -> ConfigurationReader {
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        return ConfigurationReader(
            wares: BuiltinWares.all, stores: StandInStores.all, environment: ["HOME": "/root"], files: files)
    }

    private static func container(
        _ name: String, made: Int = 1, at address: String = "10.0.0.1:3000", _ labels: [String: String]
    ) -> FoundInstance {
        let labels = labels.map { (key: "httpware.\($0.key)", value: $0.value) }
        var instance = FoundInstance(container: name, service: name, made: made, labels: labels)
        if let address = SocketAddress(address) { instance.use([address], unless: nil) }
        return instance
    }

    private func read(_ instances: FoundInstance..., text: String? = nil) throws -> GatewayConfiguration {
        let reader = text.map(Self.reader) ?? reader
        let result = reader.read(path: "f", finding: instances)
        return try #require(result.configuration, "\(result.errors)")
    }

    private func problems(_ configuration: GatewayConfiguration) -> [String] {
        configuration.found.problems.map { "\($0.place): \($0.message)" }
    }

    @Test func `a label's host and path become a route to the container`() throws {
        let read = try read(Self.container("orders", ["route": "Orders.test/api/**, /only"]))
        #expect(read.routes.map(\.name) == ["orders@docker", "orders@docker.2"])
        #expect(read.routes.map { $0.service?.name } == ["orders", "orders"])
        #expect(read.routes[0].match.hosts.map(\.optionText) == ["orders.test"])
        #expect(read.routes[0].match.paths.map(\.source) == ["/api/**"])
        #expect(read.routes[1].match.paths.map(\.source) == ["/only"])
        #expect(read.services[0].host == .preserve)
        #expect(read.found.addresses == ["orders": [try #require(SocketAddress("10.0.0.1:3000"))]])
        #expect(problems(read) == [])
    }

    @Test func `a mistake names container, label, line and column, and leaves that container out`() throws {
        let read = try read(
            Self.container("bad", ["route": "bad.test", "wares": "[{ rateLimit: { rat: 10/s } }]"]),
            Self.container("good", ["route": "good.test"]))
        #expect(read.routes.map(\.name) == ["good@docker"])
        #expect(
            problems(read) == [
                "container bad, label httpware.wares:1:17: rateLimit.rat: unknown option; did you mean \"rate\"?"
            ])
    }

    @Test(arguments: [
        (["rout": "a.test"], "rout: unknown option; did you mean \"route\"?"),
        (
            ["route": ""],
            "route[0]: \"\" is not a host and path; write a host, a path, or both, such as orders.example.com/api/**"
        ),
        (
            ["route": "Host(`a`)"],
            "route[0]: \"Host(`a`)\" is not a host and path; write a host and a path without functions, such as orders.example.com/api/**"
        ),
        (
            ["route": "a.test", "wares": "[{ files: { root: /etc } }]"],
            "wares: \"files\" is not a ware that a label can have; write it in a chain of the configuration, and name the chain"
        ),
        (
            ["route": "a.test", "wares": "[{ rateLimits: { rate: 1/s } }]"],
            "wares: \"rateLimits\" is not a ware that a label can have; did you mean \"rateLimit\"?"
        ),
        (
            ["route": "a.test", "wares": "[{ use: tokens }]"],
            "wares: \"use\" is not a ware that a label can have; write it in a chain of the configuration, and name the chain"
        ),
        (
            ["route": "a.test", "wares": "[rateLimit"],
            "did not find expected ',' or ']', while parsing a flow sequence"
        ),
        (
            ["route": "a.test", "wares": "{ a: b }"],
            "wares: a map is not a list; write [{ rateLimit: { rate: 10/s } }]"
        ),
        (
            ["route": "a.test", "service": "{ tls: { ca: /etc/shadow } }"],
            "service.tls: cannot be written here; write the service in the configuration, with discovered: NAME"
        ),
        (["route": "a.test", "service": "{ balanc: hash }"], "service.balanc: unknown key; did you mean \"balance\"?"),
        (
            ["route": "a.test", "service": "{ healthCheck: { path: nothing } }"],
            "services.a.healthCheck.path: \"nothing\" is not a path; write a path that begins with a slash, such as /healthz"
        ),
        (["route": "a.test", "chain": "nowhere"], "chain \"nowhere\" is not for labels"),
        (
            ["route": "a.test", "chain": "tokens"],
            "chain \"tokens\" is not for labels; write discover: { chains: [NAME] } in the configuration with the chains that are"
        ),
        (["route": "a.test", "port": "70000"], "port: \"70000\" is too large; write 1 to 65535"),
        (["route": "a.test", "name": "a b"], "name: is not a name; write letters, digits, -, _ and ., at most 64"),
    ])
    func `mistakes of labels`(labels: [String: String], message: String) throws {
        let read = try read(Self.container("a", labels))
        let found = read.found.problems.filter(\.leavesOut).map(\.message)
        #expect(found.first?.hasPrefix(message) == true, "\(found)")
        #expect(read.routes.isEmpty)
        #expect(read.found.addresses.isEmpty)
    }

    @Test func `a variable in a label is text, and no file is read`() throws {
        let read = try read(
            Self.container(
                "a",
                [
                    "route": "a.test",
                    "wares": "[{ requestHeaders: { set: { X: \"$HOME $$HOME ${{HOME}} ${{file:/etc/passwd}}\" } } }]",
                ]),
            Self.container("b", ["route": "b.test", "wares": "[{ requestHeaders: { set: { X: \"${HOME}\" } } }]"]))
        #expect(read.routes.map(\.name) == ["a@docker"])
        let entry = try #require(read.listeners[0].routes.first?.chain.entries.middlewares.first)
        #expect(entry.options["set"]?["X"]?.text == "$HOME $$HOME ${{HOME}} ${{file:/etc/passwd}}")
        #expect(
            problems(read).first?.hasPrefix(
                "container b, label httpware.wares:1:32: requestHeaders.set.X: \"HOME\" is not a placeholder") == true,
            "\(problems(read))")
    }

    @Test func `a chain of the file is used if the file names it for labels`() throws {
        let text = Self.file.replacing("chains: [limits] }", with: "chains: [limits, tokens] }")
        let read = try read(Self.container("a", ["route": "a.test", "chain": "tokens"]), text: text)
        #expect(read.listeners[0].routes[0].chain.entries.middlewares.count == 1)
        let wrong = Self.reader(text.replacing("tokens] }", with: "token] }")).read(path: "f")
        #expect(wrong.errors.map(\.message).contains("there is no chain \"token\"; did you mean \"tokens\"?"))
    }

    @Test func `a chain of the file comes before the label's own wares, on both sides`() throws {
        let wares = "[{ requestId: {} }, { responseHeaders: { set: { A: b } } }]"
        let read = try read(Self.container("a", ["route": "a.test", "chain": "limits", "wares": wares]))
        let entries = read.listeners[0].routes[0].chain.entries
        #expect(entries.middlewares.map(\.label) == ["bodyLimit", "requestId"])
        #expect(entries.postwares.map(\.label).contains("responseHeaders"))
    }

    @Test func `of two that claim the same, the older one has it`() throws {
        let read = try read(
            Self.container("new", made: 9, ["route": "a.test/x, new.test"]),
            Self.container("old", made: 3, ["route": "A.test/x"]))
        #expect(
            read.routes.map { "\($0.name) \($0.match.hosts[0].optionText)" }.sorted() == [
                "new@docker new.test", "old@docker a.test",
            ])
        #expect(
            problems(read) == [
                "container new, label httpware.route:1:1: a.test/x is claimed by container old before; it is left out"
            ])
    }

    @Test func `a narrow claim comes before a wide one that is older`() throws {
        let read = try read(
            Self.container("wide", made: 1, ["route": "*.test, /**"]),
            Self.container("narrow", made: 2, ["route": "a.test/x/**, a.test/**"]))
        #expect(
            read.routes.map { $0.match.hosts.map(\.optionText).joined() + $0.match.paths.map(\.source).joined() } == [
                "a.test/x/**", "a.test/**", "*.test", "/**",
            ])
    }

    @Test func `a route of the file comes before labels`() throws {
        let text = Self.file + "\nroutes: [{ name: mine, match: { host: a.test }, chain: limits }]"
        let read = try read(Self.container("a", ["route": "a.test"]), text: text)
        #expect(read.routes.map(\.name) == ["mine", "a@docker"])
        #expect(problems(read).contains { $0.contains("is never reached") })
    }

    @Test func `containers of one service with other labels are left out until they agree`() throws {
        let read = try read(
            Self.container("a", made: 1, ["route": "a.test", "name": "s"]),
            Self.container("b", made: 2, at: "10.0.0.2:3000", ["route": "b.test", "name": "s"]),
            Self.container("c", made: 3, at: "10.0.0.3:3000", ["route": "a.test", "name": "s"]))
        #expect(read.found.addresses["s"]?.map(\.description) == ["10.0.0.1:3000", "10.0.0.3:3000"])
        #expect(
            problems(read) == [
                "container b: has other labels than container a, which has service s; it is left out until they agree"
            ])
    }

    @Test func `a service of the file takes the endpoints, and decides the rest`() throws {
        let more = "\nservices: { mine: { discovered: a, balance: leastRequests } }\nroutes: [{ service: mine }]"
        let read = try read(
            Self.container("a", ["route": "a.test"]), Self.container("b", made: 0, ["route": "b.test", "name": "a"]),
            text: Self.file + more)
        #expect(read.services.map(\.name) == ["mine"])
        #expect(read.routes.map(\.name) == ["routes[0]"])
        #expect(read.found.addresses["a"]?.count == 1)
        #expect(
            problems(read) == [
                "container b: label httpware.name is a, whose endpoints a service of the configuration takes; it is left out",
                "container a: the configuration decides about the requests of service a; its labels do not",
            ])
    }

    @Test func `a service keeps its name and its claims when its containers are replaced`() throws {
        let evil = Self.container("evil", made: 5, ["route": "a.test/x/**"])
        let one = try read(Self.container("a-1", made: 1, ["route": "a.test/x/**", "name": "a"]), evil)
        #expect(one.routes.map(\.name) == ["a@docker"])
        let fresh = Self.container("a-2", made: 9, at: "10.0.0.9:1", ["route": "a.test/x/**", "name": "a"])
        let updated = try #require(one.updated(finding: [evil, fresh]))
        #expect(updated.found.addresses["a"]?.map(\.description) == ["10.0.0.9:1"])
        let again = reader.read(path: "f", keeping: one, finding: [evil, fresh])
        #expect(again.configuration?.routes.map(\.name) == ["a@docker"])
    }

    @Test func `a claim inside that of another service is told`() throws {
        let read = try read(
            Self.container("a", ["route": "a.test/api/**"]),
            Self.container("b", made: 2, ["route": "a.test/api/login"]))
        #expect(read.routes.map(\.name) == ["b@docker", "a@docker"])
        #expect(
            problems(read) == [
                "container b, label httpware.route:1:1: a.test/api/login is inside a.test/api/** of container a, and takes these requests"
            ])
    }

    @Test func `a capture is as wide as another name of it`() throws {
        let read = try read(
            Self.container("a", ["route": "a.test/api/**"]),
            Self.container("b", made: 2, ["route": "a.test/{long-name-of-it}/**"]),
            Self.container("c", made: 3, ["route": "a.test/{x}/**"]))
        #expect(read.routes.map(\.name) == ["a@docker", "b@docker"])
        #expect(problems(read).contains { $0.contains("is claimed by container b before") })
    }

    @Test func `found routes serve the listeners that the file names`() throws {
        let web = "web: { bind: \"127.0.0.1:8080\" }"
        let text = Self.file.replacing(web, with: web + ", inner: { bind: \"127.0.0.1:8081\" }")
            .replacing("chains: [limits] }", with: "chains: [limits], listeners: [web] }")
        let read = try read(Self.container("a", ["route": "a.test"]), text: text)
        #expect(read.listeners.map(\.routes.count) == [1, 0])
        let wrong = Self.reader(text.replacing("listeners: [web]", with: "listeners: [wob]")).read(path: "f")
        #expect(wrong.errors.map(\.message).contains("there is no listener \"wob\"; did you mean \"web\"?"))
    }

    @Test func `the admin listener is refused at every address of this machine`() throws {
        let open = "admin: { bind: \"0.0.0.0:9900\", token: 0123456789abcdef }"
        let text = Self.file.replacing("admin: { bind: \"127.0.0.1:9900\", token: none }", with: open)
        for address in MachineAddresses.all where address.isIPv4 {
            let read = try read(Self.container("a", at: "\(address):9900", ["route": "a.test"]), text: text)
            #expect(read.found.addresses == ["a": []])
        }
    }

    @Test func `the mistakes and the wares of one container are bounded`() throws {
        func list(_ count: Int) -> String { "[" + (0..<count).map { "x\($0)" }.joined(separator: ",") + "]" }
        let read = try read(
            Self.container("a", ["route": "a.test", "wares": list(3000)]),
            Self.container("b", ["route": "b.test", "wares": list(99)]))
        #expect(problems(read).filter { $0.hasPrefix("container a") }.count == 1)
        #expect(problems(read).filter { $0.hasPrefix("container b") }.count == 20)
    }

    @Test func `a service of the file with the same name keeps its endpoints`() throws {
        let text = Self.file + "\nservices: { a: { baseUrl: \"http://127.0.0.1:1\" } }\nroutes: [{ service: a }]"
        let read = try read(Self.container("a", ["route": "a.test"]), text: text)
        #expect(read.routes.map(\.name) == ["routes[0]"])
        #expect(problems(read).first?.hasPrefix("container a: the configuration has a service a of its own") == true)
    }

    @Test func `an address of the gateway's own is refused`() throws {
        let read = try read(
            Self.container("a", at: "127.0.0.1:9900", ["route": "a.test"]),
            Self.container("b", at: "127.0.0.1:8080", ["route": "b.test"]))
        #expect(read.found.addresses == ["a": [], "b": []])
        #expect(
            problems(read).sorted() == [
                "container a: 127.0.0.1:9900 is a listener of this gateway",
                "container b: 127.0.0.1:8080 is a listener of this gateway",
            ])
    }

    @Test func `other endpoints need no new configuration, other labels do`() throws {
        let one = try read(Self.container("a", ["route": "a.test"]))
        let moved = Self.container("a", at: "10.0.0.7:3000", ["route": "a.test"])
        let updated = try #require(one.updated(finding: [moved]))
        #expect(updated.found.addresses["a"]?.map(\.description) == ["10.0.0.7:3000"])
        #expect(one.updated(finding: [Self.container("a", ["route": "b.test"])]) == nil)
        #expect(one.updated(finding: []) == nil)
        #expect(one.updated(finding: [moved, Self.container("b", ["route": "b.test"])]) == nil)
        let local = try #require(one.updated(finding: [Self.container("a", at: "127.0.0.1:9900", ["route": "a.test"])]))
        #expect(local.found.addresses["a"] == [])
    }

    @Test func `a container with a mistake does not make every change a new configuration`() throws {
        let bad = Self.container("bad", ["route": "bad.test", "wares": "[{ rateLimit: {} }]"])
        let one = try read(bad, Self.container("a", ["route": "a.test"]))
        #expect(problems(one).count == 1)
        let updated = try #require(
            one.updated(finding: [bad, Self.container("a", at: "10.0.0.9:1", ["route": "a.test"])]))
        #expect(updated.found.problems == one.found.problems)
        #expect(Array(updated.found.addresses.keys) == ["a"])
    }

    @Test func `wares keep their state while containers come and go`() throws {
        let labels = ["route": "a.test", "wares": "[{ rateLimit: { rate: 1/s } }]"]
        let one = try read(Self.container("a", labels))
        let next = reader.read(
            again: one,
            finding: [Self.container("b", ["route": "b.test"]), Self.container("a", at: "10.0.0.2:1", labels)])
        func limit(_ configuration: GatewayConfiguration?) throws -> ObjectIdentifier {
            let route = try #require(configuration?.listeners[0].routes.first { $0.route.name == "a@docker" })
            return ObjectIdentifier(try #require(route.chain.entries.middlewares.first?.ware as AnyObject?))
        }
        #expect(try limit(one) == limit(next.configuration))
        let difference = ConfigurationDifference(from: one, to: try #require(next.configuration))
        #expect(difference.keptServices.contains("a"))
    }

    @Test func `a file that looks for nothing takes nothing`() throws {
        let text = Self.file.replacing("discover: { docker: {}, chains: [limits] }", with: "")
        let read = try read(
            Self.container("a", ["route": "a.test"]), text: text + "\nroutes: [{ chain: limits }, { chain: tokens }]")
        #expect(read.routes.count == 2)
        let needs = Self.reader(text + "\nservices: { mine: { discovered: a } }\nroutes: [{ service: mine }]").read(
            path: "f")
        #expect(needs.errors.map(\.message).contains { $0.hasPrefix("needs the section discover") })
    }

    @Test func `a service file says what labels say, and where it is wrong`() throws {
        let good = FoundInstance(
            file: "/d/a.yaml", service: "a",
            content: Array("endpoints: [10.0.0.1:80, \"[fd00::1]:81\"]\nroute: a.test\nwares: [requestId]\n".utf8))
        let bad = FoundInstance(
            file: "/d/b.yaml", service: "b", content: Array("endpoints: [169.254.169.254:80]\nroute: b.test\n".utf8))
        let none = FoundInstance(file: "/d/c.yaml", service: "c", content: Array("route: c.test\n".utf8))
        let read = try read(good, bad, none)
        #expect(read.routes.map(\.name) == ["a@folder", "c@folder"])
        #expect(read.found.addresses["a"]?.count == 2)
        #expect(read.found.addresses["c"] == [])
        #expect(
            problems(read) == ["/d/b.yaml:1:13: endpoints: 169.254.169.254:80 is the address of a cloud's metadata"])
    }

    @Test func `files that discover writes say the same as the labels`() throws {
        let labels = [
            "route": "a.test/x/**, /y", "chain": "limits", "service": "{ healthCheck: { path: /h } }",
            "wares": "[{ responseHeaders: { set: { A: \"x: # \\\"y\\\"\" } } }]",
        ]
        let one = try read(Self.container("a", made: 7, labels))
        let file = try #require(one.found.files["a"])
        let next = try read(FoundInstance(file: "/d/a.yaml", service: "other", content: Array(file.utf8)))
        #expect(next.found.files == one.found.files)
        #expect(next.routes.map(\.match) == one.routes.map(\.match))
    }
}
