import ArgumentParser
import FoundationEssentials
import Glibc
import HttpWare

/// `httpware ca`: the certificate authority of the local proxy.
struct CaCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca", abstract: "Manage the certificate authority for intercepted TLS.",
        discussion: """
            A forward listener with `intercept` shows its clients certificates that this authority signs. Clients accept them if \
            they trust the authority's own certificate. The key stays in the folder, readable for its owner only.
            """,
        subcommands: [
            CaInitCommand.self, CaShowCommand.self, CaInstallCommand.self, CaUninstallCommand.self,
            CaExportCommand.self,
        ])
}

/// The folder of the authority.
struct CaFolder: ParsableArguments {
    @Option(
        help: "The folder of the authority; httpware/ca in $XDG_DATA_HOME or ~/.local/share.", completion: .directory)
    var dir: String?

    var path: String { dir ?? CertificateAuthority.usualFolder() }

    /// The authority; ends the program if there is none.
    func read() throws -> CertificateAuthority {
        do throws(TlsFault) {
            return try CertificateAuthority(folder: path)
        } catch {
            Terminal.error("\(Program.name) ca: \(error.reason)")
            if access(FilePath.joined(path, CertificateAuthority.keyFile), F_OK) != 0 {
                Terminal.error("Make an authority with: \(Program.name) ca init")
            }
            throw ExitCode(1)
        }
    }

    /// The name of this user and machine, which people see when they look at certificates.
    static var owner: String {
        var host = [CChar](repeating: 0, count: 256)
        gethostname(&host, 255)
        let user = getpwuid(getuid()).map { String(cString: $0.pointee.pw_name) } ?? "\(getuid())"
        let name = String(decoding: host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return String("httpware CA \(user)@\(name)".prefix(64))
    }
}

struct CaInitCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init", abstract: "Make the authority; an existing one is kept.")

    @OptionGroup var folder: CaFolder
    @Flag(help: "Replace an existing authority; clients must trust the new one then.")
    var force = false
    @Option(
        parsing: .upToNextOption,
        help: "Domains, such as '*.example.com', that the authority can sign for; clients accept no other host from it."
    )
    var only: [String] = []

    func run() throws {
        let key = FilePath.joined(folder.path, CertificateAuthority.keyFile)
        let certificate = FilePath.joined(folder.path, CertificateAuthority.certificateFile)
        if !force, access(key, F_OK) == 0, access(certificate, F_OK) == 0 {
            let authority = try folder.read()
            try Terminal.result("The authority in \(folder.path) is kept; --force makes another one.")
            return try CaShowCommand.show(authority, in: folder.path)
        }
        let domains = try only.map { text in
            guard let pattern = try? HostPattern(optionText: text), pattern.port == nil, !text.hasPrefix("[") else {
                throw ValidationError("\(text) is not a domain; write one such as '*.example.com'")
            }
            return String(decoding: pattern.name, as: UTF8.self).drop { $0 == "." }.description
        }
        do throws(TlsFault) {
            try CertificateAuthority.make(in: folder.path, name: CaFolder.owner, only: domains, isReplacing: force)
        } catch {
            Terminal.error("\(Program.name) ca init: \(error.reason)")
            throw ExitCode(1)
        }
        try CaShowCommand.show(try folder.read(), in: folder.path)
    }
}

struct CaShowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Show the authority's name, fingerprint and expiry, and where it is trusted.")

    @OptionGroup var folder: CaFolder
    @Option(help: .hidden)
    var root = "/"
    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let authority = try folder.read()
        if !json { try CaShowCommand.show(authority, in: folder.path) }
        var options = TrustStoreOptions()
        options.root = root
        let stores = options.stores(of: authority, in: folder.path)
        let trusting = TrustStoreKind.here.flatMap { stores.stores($0).stores }.filter { $0.isTrusting() }
        if json {
            let value = Json.object([
                ("certificate", .text(FilePath.joined(folder.path, CertificateAuthority.certificateFile))),
                ("subject", .text(authority.subject)), ("sha256", .text(authority.fingerprint)),
                ("expires", .text(WallTime(seconds: authority.end).rfc3339)),
                ("trustedBy", .list(trusting.map { .text($0.label) })),
            ])
            return try Terminal.result(value.text)
        }
        if trusting.isEmpty {
            try Terminal.result("trusted by   no store of this machine; \(Program.name) ca install adds it")
        }
        for store in trusting { try Terminal.result("trusted by   \(store.label)") }
    }

    static func show(_ authority: CertificateAuthority, in folder: String) throws {
        try Terminal.result("certificate  \(FilePath.joined(folder, CertificateAuthority.certificateFile))")
        try Terminal.result("subject      \(authority.subject)")
        try Terminal.result("SHA-256      \(authority.fingerprint)")
        let end = Date(timeIntervalSince1970: TimeInterval(authority.end))
        try Terminal.result("expires      \(end.formatted(.iso8601.year().month().day()))")
    }
}

struct CaExportCommand: ParsableCommand {
    enum Format: String, ExpressibleByArgument, CaseIterable { case pem, der, p12 }

    static let configuration = CommandConfiguration(
        commandName: "export", abstract: "Write the authority's certificate, without its key.",
        discussion: "The PKCS#12 file is a trust store for Java; its password is changeit.")

    @OptionGroup var folder: CaFolder
    @Option(help: "pem, der or p12.")
    var format = Format.pem
    @Option(
        name: [.customShort("o"), .long], help: "The file to write; standard output otherwise.", completion: .file())
    var output: String?

    /// The password of Java's own trust store.
    static let password = "changeit"

    func run() throws {
        let authority = try folder.read()
        let bytes =
            switch format {
            case .pem: authority.pem
            case .der: authority.der
            case .p12: authority.pkcs12(password: CaExportCommand.password)
            }
        guard let output else { return try Terminal.result(bytes) }
        do throws(SystemError) {
            try PrivateFile.write(bytes, to: output, rights: 0o644)
        } catch {
            Terminal.error("\(Program.name) ca export: \(output): \(SystemError.text(of: error.code))")
            throw ExitCode(1)
        }
    }
}
