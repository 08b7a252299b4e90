// One file: the texts of a written package belong together, and are mostly these texts.

import GatewayWares
import HttpWare

/// A Swift package with a gateway and one ware, as `httpware init ware` writes it.
struct WarePackage {
    /// A file of the package.
    struct File {
        /// The path in the package.
        let path: String
        let text: String
    }

    /// Why a package cannot have these names.
    struct Problem: Error, Equatable {
        let text: String
    }

    /// The place from which packages get httpware.
    static let url = "https://example.com/httpware"

    /// The name of the ware in files: `methodRule`.
    let ware: String
    /// The name of the program: `my-gateway`.
    let program: String

    /// The ware's type: `MethodRule`.
    var type: String { ware.prefix(1).uppercased() + ware.dropFirst() }
    /// The module with the program, and the type of the program in it: `MyGateway`.
    var module: String {
        program.split { "-_.".contains($0) }.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    }

    /// A package with these names. Throws if they cannot be used.
    static func named(ware: String, program: String) throws(Problem) -> WarePackage {
        let package = WarePackage(ware: ware, program: program)
        if let problem = package.problemOfWare ?? package.problemOfProgram { throw Problem(text: problem) }
        return package
    }

    /// Words that the written files use, or that Swift reserves.
    private static let usedTypes: Set = [
        "Any", "Array", "AsyncMiddleware", "Bool", "ConfigError", "ConfigNode", "ConfigurableWare", "Error", "Exchange",
        "GatewayProgram", "HttpMethod", "HttpRequest", "HttpResponse", "HttpWare", "HttpWareGateway", "HttpWareTesting",
        "Int", "Middleware", "Never", "Optional", "OptionsReader", "Package", "Protocol", "Result", "Self", "Sendable",
        "String", "Suite", "Swift", "Task", "Test", "TestExchange", "Testing", "Type", "Verdict", "Void", "Ware",
        "WareAbout", "WareName",
    ]
    /// The modules and products that such a package builds with. No other module or product can have their names.
    static let usedModules: Set = [
        "acme", "argumentparser", "argumentparsertoolinfo", "authentication", "caddonhost", "callocations", "capturing",
        "cares",
        "cbrotli", "cbuildcommit", "ccrypt", "chiredis", "cinspectorpage", "cjailshims", "clibevent", "clmdb", "clua",
        "cluashims",
        "cnghttp2", "copenssl", "copensslshims", "cpcre2", "cpsl", "credentials", "csystemshims", "cyaml", "czlib",
        "czstd", "diskcaching", "diskcapturing", "extras", "fuzzsupport", "gatewayconfig", "gatewayexample",
        "gatewaywares",
        "httpcaching", "httpgateway", "httpware", "httpwareclient", "httpwareclientconfiguration", "httpwarecombine",
        "httpwarecommand", "httpwarefoundation", "httpwaregateway", "httpwareprogram", "httpwareredis",
        "httpwaretesting", "importing", "jail", "scripting", "scriptwares", "simulate", "simulation", "storerig",
        "storetrial",
        "swift",
        "testing",
        "todoexample", "wares",
    ]

    private var problemOfWare: String? {
        guard Program.isWareName(ware) else {
            let words = ware.split { !$0.isASCII || !$0.isLetter && !$0.isNumber }
            let meant = words.enumerated().map { place, word in
                (place == 0 ? word.prefix(1).lowercased() : word.prefix(1).uppercased()) + word.dropFirst()
            }.joined()
            let hint = Program.isWareName(meant) ? "such as \(meant)" : "such as methodRule"
            return "\(ware.quotedForErrors) cannot name a ware; write lowerCamelCase, \(hint)"
        }
        if BuiltinWares.all.contains(where: { $0.name.text == ware }) {
            return "\(ware.quotedForErrors) is a built-in ware; choose another name"
        }
        return Program.isEntryKey(ware) || WarePackage.usedTypes.contains(type)
            ? "\(ware.quotedForErrors) has another meaning; choose another name" : nil
    }

    private var problemOfProgram: String? {
        let isName = program.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "-")
        }
        guard isName, let first = program.first, first.isLetter, program.last != "-" else {
            return
                "\(program.quotedForErrors) cannot name the program; begin with a letter, and use lower-case letters, digits and -"
        }
        let isUsed =
            WarePackage.usedModules.contains(module.lowercased()) || WarePackage.usedTypes.contains(module)
            || module == type
        return isUsed ? "\(program.quotedForErrors) has another meaning; choose another name for the program" : nil
    }

    /// The files, by path.
    var files: [File] {
        [
            File(path: ".dockerignore", text: dockerignore), File(path: ".gitignore", text: ".build/\n"),
            File(path: "Dockerfile", text: dockerfile), File(path: "Makefile", text: makefile),
            File(path: "Package.swift", text: manifest), File(path: "README.md", text: readme),
            File(path: "Sources/\(module)/\(module).swift", text: main),
            File(path: "Sources/\(module)/\(type).swift", text: source),
            File(path: "Tests/\(module)Tests/\(type)Tests.swift", text: test),
            File(path: "httpware.yaml", text: configuration),
        ]
    }

    // MARK: Swift

    private var manifest: String {
        """
        // swift-tools-version: 6.2
        import PackageDescription

        let package = Package(
            name: "\(program)",
            products: [.executable(name: "\(program)", targets: ["\(module)"])],
            dependencies: [.package(url: "\(WarePackage.url)", from: "\(ProgramVersion.text)", traits: ["Gateway"])],
            targets: [
                .executableTarget(
                    name: "\(module)", dependencies: [.product(name: "HttpWareGateway", package: "httpware")]),
                .testTarget(
                    name: "\(module)Tests",
                    dependencies: [
                        "\(module)", .product(name: "HttpWareGateway", package: "httpware"),
                        .product(name: "HttpWareTesting", package: "httpware"),
                    ]),
            ])

        """
    }

    private var main: String {
        """
        import HttpWareGateway

        /// A gateway with wares of its own.
        @main struct \(module): GatewayProgram {
            static let name = "\(program)"
            static let wares: [any ConfigurableWare.Type] = [\(type).self]
        }

        """
    }

    private var source: String {
        """
        import HttpWareGateway

        /// Restricts the methods of requests; answers 405 (Method Not Allowed, RFC 9110 §15.5.6) otherwise.
        struct \(type): Middleware {
            /// The allowed methods.
            var allow: [HttpMethod] = [.get, .head]

            func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
                if allow.contains(request.method) { return .pass }
                var refusal = HttpResponse.problem(.methodNotAllowed, "this method is not allowed here")
                try refusal.fields.set(.allow, to: allow.map(\\.name).joined(separator: ", "))
                return .abort(with: refusal)
            }
        }

        extension \(type): ConfigurableWare {
            static let name: WareName = "\(ware)"
            static let about = WareAbout(
                "Restricts the methods of requests; answers 405 otherwise.", source: "RFC 9110 §15.5.6",
                example: \"""
                    - \(ware): { allow: [GET, HEAD] }
                    \""")

            init(options: inout OptionsReader) {
                self.init()
                options.read("allow", into: &allow, doc: "methods of the requests that pass; all others are refused with 405")
                options.refuseEmpty("allow", "write such as [GET, HEAD]")
            }
        }

        """
    }

    private var test: String {
        """
        import HttpWareGateway
        import HttpWareTesting
        import Testing

        @testable import \(module)

        @Suite struct \(type)Tests {
            @Test func `another method is refused with 405 and nothing goes upstream`() async throws {
                let exchange = try TestExchange(\(type).self, options: ["allow": ["GET", "PUT"]])
                let response = try await exchange.send(.post("/"))
                #expect(response.status == .methodNotAllowed)
                #expect(response.fields[.allow] == "GET, PUT")
                #expect(exchange.upstream.requests.isEmpty)
            }

            @Test func `GET passes by default`() async throws {
                let exchange = try TestExchange(\(type).self)
                #expect(try await exchange.send(.get("/")).status == .ok)
                #expect(exchange.upstream.requests.count == 1)
            }

            @Test(arguments: [["allow": []], ["allow": ["get"]], ["alow": ["GET"]]] as [ConfigNode])
            func `an empty, invalid or unknown option is refused at load`(options: ConfigNode) {
                #expect(throws: ConfigError.self) { try TestExchange(\(type).self, options: options) }
            }
        }

        """
    }

    // MARK: Files to run it

    private var configuration: String {
        """
        # A gateway in front of one application. After a change: swift run \(program) check
        version: 1

        admin: { bind: "${HTTPWARE_ADMIN:-127.0.0.1:9900}", ui: false } # used by the health check of the container

        listeners:
          web: { bind: "${HTTPWARE_BIND:-127.0.0.1:8080}" }

        services:
          app: { baseUrl: "${APP_URL:-http://127.0.0.1:3000}" }

        chains:
          app:
            middlewares:
              - requestId
              - \(ware): { allow: [GET, HEAD] }
            postwares:
              - accessLog

        routes:
          - { name: app, service: app, chain: app }

        """
    }

    /// The C libraries, as Debian names them.
    static let packages = """
        libevent-dev libc-ares-dev libnghttp2-dev libpcre2-dev liblmdb-dev libhiredis-dev libyaml-dev liblua5.4-dev zlib1g-dev \
        libbrotli-dev libzstd-dev libssl-dev libcrypt-dev pkg-config
        """

    private var makefile: String {
        """
        # Swift keeps its exclusivity checks in dependencies, also in release builds; here they take a quarter of a request's time.
        # This flag removes them from the whole program. Debug builds, and so `swift test`, have the checks.
        RELEASE := -c release --static-swift-stdlib -Xswiftc -enforce-exclusivity=unchecked

        .PHONY: build test check run image

        build:
        \tswift build $(RELEASE) --product \(program)

        test:
        \tswift test

        check: build
        \t.build/release/\(program) check

        run: build
        \t.build/release/\(program) run

        image:
        \tdocker build -t \(program) .

        """
    }

    private var dockerfile: String {
        """
        # syntax=docker/dockerfile:1
        # docker build -t \(program) .
        # docker run --rm --read-only -p 8080:8080 -e APP_URL=http://app:3000 \(program)

        FROM swift:6.3-bookworm AS builder
        RUN apt-get update \\
            && apt-get install --yes --no-install-recommends \\
                \(WarePackage.packages) ca-certificates \\
            && rm -rf /var/lib/apt/lists/*
        WORKDIR /source
        # The dependencies change seldom: they stay in a layer of their own.
        COPY Package.* ./
        RUN swift package resolve
        COPY Sources Sources
        COPY Tests Tests
        # The flags are those of the Makefile.
        RUN swift build -c release --product \(program) --static-swift-stdlib -Xswiftc -enforce-exclusivity=unchecked -Xlinker -s
        # The program, the C libraries that it loads with their loader, the certificates of authorities, a user.
        RUN install -D .build/release/\(program) /image/usr/bin/\(program) \\
            && ldd .build/release/\(program) | grep -o '/[^ ]*' | while read -r library; do install -D "$library" "/image$library"; done \\
            && install -D -m 644 /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ca-certificates.crt \\
            && echo '\(program):x:10001:10001::/:' > /image/etc/passwd \\
            && echo '\(program):x:10001:' > /image/etc/group
        COPY httpware.yaml /image/etc/httpware/httpware.yaml

        FROM scratch
        COPY --from=builder /image/ /
        ENV HTTPWARE_BIND=0.0.0.0:8080
        USER 10001:10001
        EXPOSE 8080
        STOPSIGNAL SIGTERM
        HEALTHCHECK --interval=10s --timeout=5s --start-period=5s CMD ["/usr/bin/\(program)", "health", "-c", "/etc/httpware/httpware.yaml"]
        ENTRYPOINT ["/usr/bin/\(program)"]
        CMD ["run", "-c", "/etc/httpware/httpware.yaml"]

        """
    }

    private var dockerignore: String {
        """
        # Nothing but what the Dockerfile copies.
        *
        !Package.*
        !Sources
        !Tests
        !httpware.yaml

        """
    }

    private var readme: String {
        """
        # \(program)

        A gateway: httpware with a ware of its own, `\(ware)`, in `Sources/\(module)/\(type).swift`. The file `httpware.yaml` uses it.

        It needs Swift 6.3 and, on Debian and Ubuntu, these packages:

            apt-get install \(WarePackage.packages)

        - `swift test` runs the tests of the ware.
        - `swift run \(program) check` checks `httpware.yaml`: every error, with its line and column.
        - `swift run \(program) run` starts the gateway on port 8080, in front of the application on port 3000.
        - `swift run \(program) wares \(ware)` shows the ware's options; without a name, all wares.
        - `make build` makes `.build/release/\(program)` without Swift's exclusivity checks, which is faster; `make image` makes a
          container.

        For another ware, add its file, its test, and its type to `wares` in `Sources/\(module)/\(module).swift`.
        \(WarePackage.url) has the documentation: *A gateway of your own*, *Writing a ware*, *Configuration*.

        """
    }
}
