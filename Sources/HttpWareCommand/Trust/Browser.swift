import ArgumentParser
import FoundationEssentials
import Glibc
import HttpWare

/// A browser that `with` starts. It has a separate profile, which trusts the proxy's authority in addition to the usual
/// ones.
enum Browser: String, ExpressibleByArgument, CaseIterable {
    case chromium, firefox

    /// The names of its program.
    private var programs: [String] {
        switch self {
        case .chromium: ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
        case .firefox: ["firefox", "firefox-esr"]
        }
    }

    /// The command that starts the browser, and its environment. Ends the program if something is missing.
    func prepared(
        _ url: String?, _ arguments: [String], _ environment: CommandEnvironment, _ user: [String: String],
        _ authority: CertificateAuthority?
    ) throws -> (command: [String], environment: [String: String]) {
        guard let program = programs.lazy.compactMap({ SearchPath.program($0, user) }).first else {
            throw Browser.ended("\(rawValue) is not installed: PATH has none of \(programs.joined(separator: ", "))")
        }
        let profile = FilePath.joined(environment.files.folder, "profile")
        var variables = environment.variables(user)
        let database: String
        var command: [String]
        switch self {
        case .chromium:
            // Chromium reads certificates below HOME, wherever the profile is.
            database = FilePath.joined(profile, ".pki/nssdb")
            variables["HOME"] = profile
            if user["XAUTHORITY"] == nil, let home = user["HOME"] {
                let cookie = FilePath.joined(home, ".Xauthority")
                if FileManager.default.fileExists(atPath: cookie) { variables["XAUTHORITY"] = cookie }
            }
            command = [
                program, "--user-data-dir=\(FilePath.joined(profile, "chromium"))",
                "--proxy-server=\(environment.proxy)",
                // The proxy is used for servers on this machine too.
                "--proxy-bypass-list=<-loopback>", "--no-first-run", "--no-default-browser-check",
                "--disable-background-networking", "--disable-component-update", "--disable-sync",
            ]
            // Chromium refuses to run as root with a sandbox.
            if getuid() == 0 { command.append("--no-sandbox") }
        case .firefox:
            database = profile
            command = [program, "--profile", profile, "--no-remote"]
        }
        do throws(SystemError) {
            for folder in [profile, database] { try PrivateFile.makeFolders(folder) }
            if self == .firefox {
                try PrivateFile.write(
                    Array(Browser.preferences(environment).utf8), to: FilePath.joined(profile, "user.js"))
            }
        } catch {
            throw Browser.ended("\(profile) cannot be written: \(SystemError.text(of: error.code))")
        }
        if let authority {
            do throws(TrustProblem) {
                let tool = try NssDatabase.tool(user)
                try NssDatabase(folder: database, tool: tool).make()
                try NssDatabase(folder: database, tool: tool)
                    .add(environment.files.authority, name: authority.commonName)
            } catch {
                throw Browser.ended(error.text)
            }
        }
        return (command + arguments + (url.map { [$0] } ?? []), variables)
    }

    /// The preferences that Firefox reads at its start.
    private static func preferences(_ environment: CommandEnvironment) -> String {
        let bare = environment.host.filter { $0 != "[" && $0 != "]" }
        let values = [
            ("network.proxy.type", "1"), ("network.proxy.http", "\"\(bare)\""),
            ("network.proxy.http_port", "\(environment.port)"), ("network.proxy.ssl", "\"\(bare)\""),
            ("network.proxy.ssl_port", "\(environment.port)"), ("network.proxy.no_proxies_on", "\"\""),
            // The proxy is used for servers on this machine too.
            ("network.proxy.allow_hijacking_localhost", "true"),
            ("browser.shell.checkDefaultBrowser", "false"), ("browser.aboutwelcome.enabled", "false"),
            ("datareporting.policy.dataSubmissionEnabled", "false"), ("app.update.auto", "false"),
            ("browser.startup.homepage_override.mstone", "\"ignore\""),
        ]
        return values.map { "user_pref(\"\($0.0)\", \($0.1));\n" }.joined()
    }

    private static func ended(_ text: String) -> ExitCode {
        Terminal.error("\(Program.name) with --browser: \(text)")
        return ExitCode(1)
    }
}
