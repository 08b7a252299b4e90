import GatewayWares
import Glibc
package import HttpWare
import Synchronization

/// The program that runs the commands: `httpware`, or a gateway with wares of its own.
package struct Program: Sendable {
    /// The name in help, texts and log lines.
    var name: String
    /// The program's own version; `nil` if only that of httpware counts.
    var version: String?
    /// The program's own wares, in addition to the built-in ones.
    var wares: [any ConfigurableWare.Type]

    package init(name: String, version: String? = nil, wares: [any ConfigurableWare.Type] = []) {
        self.name = name
        self.version = version
        self.wares = wares
    }

    /// The keys of a chain's entry, which no ware can have as its name.
    private static let entryKeys = ["if", "filter", "as", "order", "use"]

    /// Why the program cannot start; `nil` if it can.
    var problem: String? {
        let isName = name.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
                || "-_.".utf8.contains($0)
        }
        guard isName, let first = name.first, first.isLetter else {
            return
                "\(name.quotedForErrors) cannot name a program; begin with a letter, and use letters, digits, -, _ and ."
        }
        var known = Dictionary(
            BuiltinWares.all.map { ($0.name.text, "the built-in ware") }, uniquingKeysWith: { first, _ in first })
        for ware in wares {
            let text = ware.name.text
            guard Program.isWareName(text) else {
                return "\(ware): \(text.quotedForErrors) cannot name a ware; write lowerCamelCase, such as bodyLimit"
            }
            if Program.isEntryKey(text) {
                return "\(ware): \(text.quotedForErrors) is a key of every entry of a chain; choose another name"
            }
            if let other = known[text] {
                return "\(ware): \(text.quotedForErrors) is also the name of \(other); choose another name"
            }
            known[text] = "\(ware)"
        }
        return nil
    }

    /// Whether the text is a key of every entry of a chain.
    static func isEntryKey(_ text: String) -> Bool { entryKeys.contains(text) }

    /// Whether the text is in lowerCamelCase.
    static func isWareName(_ text: String) -> Bool {
        guard let first = text.utf8.first, (0x61...0x7a).contains(first) else { return false }
        return text.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0)
        }
    }

    // MARK: The running program

    /// Set once, before the first command; the commands of Swift Argument Parser are types, which are not passed values.
    private static let running = Mutex(Program(name: "httpware"))

    /// The running program.
    static var current: Program { running.withLock { $0 } }
    /// The running program's name.
    static var name: String { ProgramName.text }
    /// The wares that files can use: the built-in ones and the program's own.
    static var allWares: [any ConfigurableWare.Type] { BuiltinWares.all + current.wares }

    /// The name with the versions, as `--version` prints it: `my-gateway 1.4 (httpware 0.2.0)`.
    var nameAndVersion: String {
        let own = version.map { "\(name) \($0)" } ?? name
        return isHttpware ? "\(name) \(ProgramVersion.text)" : "\(own) (httpware \(ProgramVersion.text))"
    }

    /// The versions, as the command `version` prints them.
    var versions: [(name: String, version: String)] {
        (isHttpware ? [] : [(name, version ?? "")]) + [("httpware", ProgramVersion.text)]
    }

    /// Whether the program is `httpware` itself.
    private var isHttpware: Bool { name == "httpware" && version == nil }

    /// Runs the command of the command line, as this program. Ends the process if the program or the command is invalid.
    package func main() {
        Terminal.reserveDescriptors()
        ProgramName.use(name)
        if let problem {
            Terminal.error("\(name): \(problem)")
            exit(3)
        }
        Program.running.withLock { $0 = self }
        HttpWareCommand.start()
    }
}
