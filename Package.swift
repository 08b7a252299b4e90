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
]

let package = Package(
    name: "httpware",
    platforms: [.macOS(.v26)],
    products: [
        .executable(name: "httpware", targets: ["HttpWareCommand"]),
        .library(name: "HttpWare", targets: ["HttpWare"]),
        .library(name: "HttpWareTesting", targets: ["HttpWareTesting"]),
    ],
    dependencies: [
        // Reads the command line, prints its help: our own would be one more parser to trust.
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        // Parses YAML to a tree that knows line and column (libyaml inside).
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        .systemLibrary(name: "CLibevent", pkgConfig: "libevent_core", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
        .systemLibrary(name: "CPcre2", pkgConfig: "libpcre2-8", providers: [.apt(["libpcre2-dev"])]),
        .target(name: "CSystem"),

        .target(
            name: "HttpWare", dependencies: ["CLibevent", "CAres", "CPcre2", "CSystem"], swiftSettings: settings),
        .target(name: "Wares", dependencies: ["HttpWare"], swiftSettings: settings),
        .target(
            name: "GatewayConfig", dependencies: ["HttpWare", .product(name: "Yams", package: "Yams")],
            swiftSettings: settings),
        .target(name: "HttpGateway", dependencies: ["HttpWare", "Wares", "GatewayConfig"], swiftSettings: settings),
        .target(name: "HttpWareTesting", dependencies: ["HttpWare"], swiftSettings: settings),
        .executableTarget(
            name: "HttpWareCommand",
            dependencies: ["HttpGateway", "GatewayConfig", "HttpWare", "Wares", .product(name: "ArgumentParser", package: "swift-argument-parser")],
            swiftSettings: settings),
        .executableTarget(name: "httpware-bench", dependencies: ["HttpWare", "Wares"], swiftSettings: settings),

        .testTarget(name: "HttpWareTests", dependencies: ["HttpWare", "HttpWareTesting"], swiftSettings: settings),
        .testTarget(
            name: "WaresTests", dependencies: ["Wares", "HttpWare", "HttpWareTesting"], swiftSettings: settings),
        .testTarget(
            name: "GatewayConfigTests", dependencies: ["GatewayConfig", "HttpWare"], exclude: ["Cases"],
            swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
