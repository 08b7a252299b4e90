// swift-tools-version: 6.2

import PackageDescription

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    // A warning names a mistake, such as a cast that always fails. Newer C libraries may deprecate functions. SwiftPM ignores this
    // where the package is a dependency.
    .treatAllWarnings(as: .error),
    .treatWarning("DeprecatedDeclaration", as: .warning),
]

// Swift checks at run time that nobody reads what another is changing. In debug builds, and so in every test, it does so here
// too; a release build of the gateway goes without: measured with callgrind on a plain GET, it takes 9,400 of 36,000
// instructions. SwiftPM may refuse such flags in a dependency, so where this package is one, the checks stay: in a checkout of
// SwiftPM or Xcode, unpacked from a registry, or vendored in another package. By a path it may also be somebody's own clone, for
// which SwiftPM allows them; HTTPWARE_CHECKED=1 leaves them out there, too. The Makefile that `httpware init ware` writes turns
// the checks off for its whole program.
let isDependency =
    ["/checkouts/", "/registry/downloads/", "/.build/", "/SourcePackages/"].contains {
        Context.packageDirectory.contains($0)
    } || Context.environment["HTTPWARE_CHECKED"] != nil
let dataPath: [SwiftSetting] =
    isDependency ? [] : [.unsafeFlags(["-enforce-exclusivity=unchecked"], .when(configuration: .release))]

// For `make extras`: the programs that no test compiles are here, too, without the packages that only they need. The flags of the modules
// stay, so that none of them is compiled again. SwiftPM also links some of them, without libFuzzer.
let compilesExtras = Context.environment["HTTPWARE_EXTRAS"] != nil

// The fuzz targets need libFuzzer, and the sanitizers that Tests/Fuzz/run.sh turns on: they are here only for it.
let fuzzTargets: [Target] =
    Context.environment["HTTPWARE_FUZZ"] == nil && !compilesExtras
    ? []
    : [
        .target(
            name: "FuzzSupport",
            dependencies: [
                "HttpWare", "HttpCaching", "DiskCaching", "DiskCapturing", "Credentials", "Authentication", "Acme",
                "Capturing", "Wares",
                "GatewayWares", "GatewayConfig", "HttpGateway", "HttpWareClient", "HttpWareRedis", "HttpWareTesting",
                "Scripting", "Importing", "Jail",
            ],
            path: "Tests/Fuzz/Support",
            swiftSettings: settings + (compilesExtras ? [.define("HTTPWARE_EXTRAS")] : []))
    ]
        + [
            "RequestHead", "ResponseHead", "Chunks", "Http2Server", "Http2Client", "Configuration", "Credentials",
            "TokenResponse", "StoredRecord", "CacheFields", "RedisReply", "EventStream", "ContentRange", "Har",
            "TunnelBytes", "ProxyHeader", "Placeholders", "CaptureFilter", "CapturedMessages", "CaptureRecords",
            "TraceContext", "FilePaths", "JsonEdits", "StickyToken", "ClientFields", "AcmeAnswers", "MessageSignature",
            "OidcLogin", "ContentCodings", "RecordJournal", "Scripts", "CalloutAnswers", "FoundServices", "Imports",
            "Approvals", "DnsQueries",
        ].map {
            .executableTarget(
                name: "Fuzz\($0)", dependencies: ["FuzzSupport"], path: "Tests/Fuzz/\($0)", swiftSettings: settings)
        }

// The benchmarks measure what is internal to the data path: Sources/httpware-bench/Bench.swift says how they are built.
let isMeasured = Context.environment["HTTPWARE_BENCH"] != nil
let measuredSettings: [SwiftSetting] = isMeasured ? [.unsafeFlags(["-enable-testing"])] : []
let hasBench = isMeasured || compilesExtras
let benchSettings: [SwiftSetting] = hasBench ? [.define("HTTPWARE_BENCH")] : []
// Counts what the benchmarks allocate, in place of the C library's own malloc.
let benchTargets: [Target] = hasBench ? [.target(name: "CAllocations")] : []
// The client that ours is measured beside.
let benchPackages: [Package.Dependency] =
    isMeasured
    ? [
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    ] : []
let benchDependencies: [Target.Dependency] = hasBench ? ["CAllocations", "HttpWareClient", "HttpWareTesting"] : []
let peers: [Target.Dependency] =
    isMeasured
    ? [
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
        .product(name: "NIOCore", package: "swift-nio"),
        .product(name: "NIOFoundationCompat", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
    ] : []

// The disk store's driver for Tests/Load/stores.py.
let trialTargets: [Target] =
    hasBench
    ? [
        .executableTarget(
            name: "StoreTrial", dependencies: ["DiskCaching", "HttpCaching", "HttpWare", "HttpWareTesting"],
            path: "Tests/Load/StoreTrial", swiftSettings: settings)
    ] : []

// Depends on them all: it is built for the mistakes that the compiler finds in them, and links none of them.
let extras: [Target] =
    compilesExtras
    ? [
        .target(
            name: "Extras",
            dependencies: (fuzzTargets + trialTargets).map { .target(name: $0.name) } + ["httpware-bench"],
            path: "Tests/Extras", swiftSettings: settings)
    ] : []

// Makes the site of the documentation: `make docs`.
let docsPackages: [Package.Dependency] =
    Context.environment["HTTPWARE_DOCS"] == nil
    ? [] : [.package(url: "https://github.com/swiftlang/swift-docc-plugin", from: "1.5.0")]

// What `httpware version` calls the commit; the Makefile asks git. SwiftPM's own `Context.gitInformation` stays that of the
// first build, as the result of this file is kept until its text or the environment changes.
let commit = Context.environment["HTTPWARE_COMMIT"] ?? "unknown"

let package = Package(
    name: "httpware",
    platforms: [.macOS(.v26)],
    products: [
        .executable(name: "httpware", targets: ["HttpWareProgram", "CBuildCommit"]),
        .library(name: "HttpWare", targets: ["HttpWare"]),
        .library(name: "GatewayWares", targets: ["GatewayWares"]),
        .library(name: "DiskCaching", targets: ["DiskCaching"]),
        .library(name: "HttpWareGateway", targets: ["HttpWareGateway"]),
        .library(name: "HttpWareClient", targets: ["HttpWareClient"]),
        .library(name: "HttpWareClientConfiguration", targets: ["HttpWareClientConfiguration"]),
        .library(name: "HttpWareCombine", targets: ["HttpWareCombine"]),
        .library(name: "HttpWareFoundation", targets: ["HttpWareFoundation"]),
        .library(name: "HttpWareRedis", targets: ["HttpWareRedis"]),
        .library(name: "HttpWareTesting", targets: ["HttpWareTesting"]),
    ],
    traits: [
        .default(enabledTraits: ["Gateway", "Publishers", "HttpTypes", "PublicSuffixes"]),
        .trait(
            name: "Gateway",
            description: "The gateway, its command, and configuration files: swift-argument-parser and libyaml."),
        .trait(name: "Publishers", description: "The product HttpWareCombine where there is no Combine: OpenCombine."),
        .trait(
            name: "HttpTypes",
            description: "The client's conversions to HTTPRequest, HTTPResponse and HTTPFields: swift-http-types."),
        .trait(
            name: "PublicSuffixes",
            description: "The list of public suffixes, for which the client takes no cookies: libpsl."),
    ],
    dependencies: [
        // Reads the command line, prints its help: our own would be one more parser to trust.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        // Parses YAML to a tree that knows line and column (libyaml inside).
        // The messages of other Swift libraries: the client converts to them and from them.
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        // Publishers where there is no Combine; only for those who ask for the product.
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    ] + benchPackages + docsPackages,
    targets: [
        .systemLibrary(name: "CLibevent", pkgConfig: "libevent_core", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
        .systemLibrary(name: "CNghttp2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .systemLibrary(name: "CPcre2", pkgConfig: "libpcre2-8", providers: [.apt(["libpcre2-dev"])]),
        .systemLibrary(name: "CLmdb", providers: [.apt(["liblmdb-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CBrotli", pkgConfig: "libbrotlienc", providers: [.apt(["libbrotli-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        // Without pkgConfig: a program without the trait does not need it.
        .systemLibrary(name: "CPsl", providers: [.apt(["libpsl-dev"])]),
        .systemLibrary(name: "CYaml", providers: [.apt(["libyaml-dev"])]),
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        .systemLibrary(name: "CLua", pkgConfig: "lua5.4", providers: [.apt(["liblua5.4-dev"])]),
        // Lua reports errors by jumps: all calls that may jump stay in C.
        .target(name: "CLuaShims", dependencies: ["CLua"]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
        .target(name: "COpenSSLShims", dependencies: ["COpenSSL"]),
        // The inspector page: an edit of a file in Page builds it anew.
        .target(name: "CInspectorPage", exclude: ["Page"]),
        // The program that runs addons of mitmproxy: an edit of it builds it anew.
        .target(name: "CAddonHost", exclude: ["Host"]),
        .target(name: "CCrypt", linkerSettings: [.linkedLibrary("crypt")]),
        // Not CSystem: swift-system has a target of that name, and no package graph takes a name twice.
        .target(name: "CSystemShims"),
        // The child of a fork makes system calls only: that is C.
        .target(name: "CJailShims"),
        // Only linked: what imports a C target is compiled again when one of its flags changes, as this one does with each commit.
        .target(
            name: "CBuildCommit", dependencies: ["CSystemShims"], publicHeadersPath: ".",
            cSettings: [.define("HTTPWARE_COMMIT", to: commit)]),

        .target(
            name: "HttpWare",
            dependencies: [
                "CLibevent", "CAres", "CNghttp2", "CPcre2", "CZlib", "CBrotli", "CZstd", "COpenSSL",
                "COpenSSLShims", "CSystemShims",
            ],
            swiftSettings: settings + dataPath + measuredSettings),
        .target(
            name: "HttpCaching",
            dependencies: ["HttpWare"],
            swiftSettings: settings + dataPath + measuredSettings),
        .target(
            name: "DiskCaching", dependencies: ["HttpCaching", "HttpWare", "CLmdb"],
            swiftSettings: settings + dataPath + measuredSettings),
        .target(name: "Credentials", dependencies: ["HttpWare"], swiftSettings: settings + dataPath),
        .target(
            name: "Authentication", dependencies: ["HttpWare", "Credentials", "CCrypt"],
            swiftSettings: settings + dataPath),
        .target(name: "Acme", dependencies: ["HttpWare", "Credentials"], swiftSettings: settings + dataPath),
        .target(name: "Capturing", dependencies: ["HttpWare"], swiftSettings: settings + dataPath),
        .target(name: "Scripting", dependencies: ["CLuaShims"], swiftSettings: settings + dataPath),
        .target(
            name: "DiskCapturing", dependencies: ["Capturing", "HttpCaching", "HttpWare"],
            swiftSettings: settings + dataPath),
        // The wares of an app's chain. Those that only a gateway needs are a module of their own, so that no app compiles them.
        .target(
            name: "Wares", dependencies: ["HttpWare", "Credentials", "HttpCaching"],
            swiftSettings: settings + dataPath + measuredSettings),
        .target(
            name: "ScriptWares", dependencies: ["HttpWare", "HttpCaching", "Scripting", "Wares"],
            swiftSettings: settings + dataPath),
        .target(
            name: "GatewayWares",
            dependencies: [
                "HttpWare", "ScriptWares", "Authentication", "Capturing", "Credentials", "HttpCaching", "Wares",
                "CAddonHost",
            ],
            swiftSettings: settings + dataPath + measuredSettings),
        .target(
            name: "HttpWareRedis",
            dependencies: ["HttpWare", "Acme", "HttpCaching", "Credentials", "Wares", "GatewayWares", "CHiredis"],
            swiftSettings: settings + dataPath),
        .target(
            name: "GatewayConfig",
            dependencies: [
                "HttpWare", "Acme", "Capturing", "HttpCaching", "Credentials",
                .target(name: "CYaml", condition: .when(traits: ["Gateway"])),
            ],
            swiftSettings: settings),
        // The wall around a program: its namespaces, its names, its ways out.
        .target(name: "Jail", dependencies: ["HttpWare", "CJailShims"], swiftSettings: settings + dataPath),
        // Turns the files of other gateways into ours.
        .target(name: "Importing", dependencies: ["HttpWare", "GatewayConfig"], swiftSettings: settings),
        .target(
            name: "HttpGateway",
            dependencies: [
                "HttpWare", "Acme", "Capturing", "HttpCaching", "DiskCaching", "DiskCapturing", "Credentials", "Wares",
                "GatewayWares", "HttpWareRedis", "GatewayConfig", "CInspectorPage",
            ],
            swiftSettings: settings + dataPath),
        .target(
            name: "HttpWareClient",
            dependencies: [
                "HttpWare", "HttpCaching", "Credentials", "Wares",
                .target(name: "CPsl", condition: .when(traits: ["PublicSuffixes"])),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HttpTypes"])),
            ],
            swiftSettings: settings + dataPath),
        .target(
            name: "HttpWareClientConfiguration",
            dependencies: ["HttpWareClient", "GatewayConfig", "GatewayWares", "HttpCaching", "HttpWare"],
            swiftSettings: settings),
        .target(
            name: "HttpWareCombine",
            dependencies: [
                "HttpWareClient",
                .product(name: "OpenCombine", package: "OpenCombine", condition: .when(traits: ["Publishers"])),
            ],
            swiftSettings: settings),
        .target(name: "HttpWareFoundation", dependencies: ["HttpWare"], swiftSettings: settings),
        .target(
            name: "HttpWareTesting", dependencies: ["HttpWare", "Capturing", "CSystemShims"], swiftSettings: settings),
        .executableTarget(
            name: "TodoExample", dependencies: ["HttpWareClient", "HttpWareTesting"], swiftSettings: settings),
        .target(
            name: "HttpWareCommand",
            dependencies: [
                "HttpGateway", "GatewayConfig", "Acme", "Capturing", "DiskCaching", "HttpCaching", "HttpWare",
                "Importing", "Jail", "ScriptWares", "Wares", "GatewayWares", "CSystemShims",
                .product(
                    name: "ArgumentParser", package: "swift-argument-parser", condition: .when(traits: ["Gateway"])),
            ],
            swiftSettings: settings),
        .target(name: "HttpWareGateway", dependencies: ["HttpWareCommand", "HttpWare"], swiftSettings: settings),
        .executableTarget(name: "HttpWareProgram", dependencies: ["HttpWareGateway"], swiftSettings: settings),
        // The package that `httpware init ware methodRule --program gateway-example` writes.
        .executableTarget(name: "GatewayExample", dependencies: ["HttpWareGateway"], swiftSettings: settings),
        .executableTarget(
            name: "httpware-bench",
            dependencies: ["HttpWare", "Authentication", "HttpCaching", "Credentials", "Wares", "GatewayWares"]
                + benchDependencies + peers,
            swiftSettings: settings + benchSettings),

        // The gateway in a world of its own: Tests/Simulation/README.md.
        .target(
            name: "Simulation",
            dependencies: ["HttpGateway", "GatewayConfig", "GatewayWares", "HttpWare", "HttpWareRedis", "CNghttp2"],
            path: "Tests/Simulation/World", swiftSettings: settings),
        .executableTarget(
            name: "Simulate", dependencies: ["Simulation"], path: "Tests/Simulation/Run", swiftSettings: settings),
        .testTarget(
            name: "SimulationTests", dependencies: ["Simulation", "HttpWare"], path: "Tests/Simulation/Tests",
            swiftSettings: settings),
        // What the tests of stores share, in three modules.
        .target(
            name: "StoreRig", dependencies: ["HttpCaching", "HttpWare"], path: "Tests/StoreRig", swiftSettings: settings
        ),
        .testTarget(
            name: "AcmeTests", dependencies: ["Acme", "Credentials", "HttpWare", "HttpWareRedis", "HttpWareTesting"],
            swiftSettings: settings),
        .testTarget(name: "JailTests", dependencies: ["Jail", "HttpWare", "CJailShims"], swiftSettings: settings),
        .testTarget(name: "ScriptingTests", dependencies: ["Scripting"], swiftSettings: settings),
        .testTarget(
            name: "ScriptWaresTests",
            dependencies: ["ScriptWares", "HttpWare", "HttpCaching", "Wares", "HttpWareTesting"],
            swiftSettings: settings),
        .testTarget(name: "CapturingTests", dependencies: ["Capturing", "HttpWare"], swiftSettings: settings),
        .testTarget(
            name: "DiskCapturingTests", dependencies: ["DiskCapturing", "Capturing", "HttpWare", "HttpWareTesting"],
            swiftSettings: settings),
        .testTarget(
            name: "HttpWareTests",
            dependencies: ["HttpWare", "HttpWareTesting", "CNghttp2", "COpenSSL", "COpenSSLShims", "CZlib", "CZstd"],
            swiftSettings: settings),
        .testTarget(
            name: "HttpWareTestingTests", dependencies: ["HttpWare", "HttpWareTesting"], swiftSettings: settings),
        .testTarget(
            name: "HttpCachingTests", dependencies: ["HttpCaching", "HttpWare", "HttpWareTesting", "StoreRig"],
            swiftSettings: settings),
        .testTarget(
            name: "DiskCachingTests",
            dependencies: ["DiskCaching", "HttpCaching", "HttpWare", "HttpWareTesting", "StoreRig"],
            swiftSettings: settings),
        .testTarget(
            name: "CredentialsTests", dependencies: ["Credentials", "Authentication", "HttpWare", "HttpWareTesting"],
            exclude: ["Fixtures"], swiftSettings: settings),
        .testTarget(
            name: "WaresTests",
            dependencies: [
                "Wares", "GatewayWares", "Authentication", "Credentials", "DiskCaching", "HttpCaching", "HttpWare",
                "HttpWareRedis", "HttpWareTesting",
            ],
            exclude: ["Signing/Fixtures"], swiftSettings: settings),
        .testTarget(
            name: "HttpWareRedisTests",
            dependencies: [
                "HttpWareRedis", "Wares", "GatewayWares", "Credentials", "HttpCaching", "HttpWare", "HttpWareTesting",
                "StoreRig",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "GatewayConfigTests",
            dependencies: [
                "GatewayConfig", "DiskCaching", "HttpCaching", "Credentials", "HttpWare", "HttpWareRedis",
            ],
            exclude: ["Cases", "Differences"],
            swiftSettings: settings),
        .testTarget(
            name: "ImportingTests",
            dependencies: ["Importing", "GatewayConfig", "GatewayWares", "HttpGateway", "HttpWare"],
            swiftSettings: settings),
        .testTarget(
            name: "HttpGatewayTests",
            dependencies: [
                "HttpGateway", "GatewayConfig", "HttpCaching", "HttpWareRedis", "Credentials", "Wares", "GatewayWares",
                "HttpWare", "HttpWareTesting",
            ],
            swiftSettings: settings),
        .testTarget(
            name: "HttpWareClientTests",
            dependencies: [
                "HttpWareClient", "HttpWareClientConfiguration", "HttpWareCombine", "HttpWareFoundation", "TodoExample",
                "DiskCaching",
                "HttpCaching", "Credentials",
                "Wares",
                "HttpWare",
                "HttpWareTesting",
                .product(name: "HTTPTypes", package: "swift-http-types", condition: .when(traits: ["HttpTypes"])),
                .product(name: "OpenCombine", package: "OpenCombine", condition: .when(traits: ["Publishers"])),
            ],
            swiftSettings: settings),
        .testTarget(
            name: "HttpWareCommandTests", dependencies: ["HttpWareCommand", "HttpWare"], swiftSettings: settings),
        .testTarget(
            name: "HttpWareGatewayTests", dependencies: ["HttpWareGateway", "GatewayExample"], swiftSettings: settings),
        .testTarget(
            name: "GatewayExampleTests", dependencies: ["GatewayExample", "HttpWareGateway", "HttpWareTesting"],
            swiftSettings: settings),
    ] + fuzzTargets + benchTargets + trialTargets + extras,
    swiftLanguageModes: [.v6]
)
