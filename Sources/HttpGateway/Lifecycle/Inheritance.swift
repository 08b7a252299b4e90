import Glibc
import HttpWare

/// Resources from the process that started the program: listening sockets, and a service manager to notify.
///
/// | variable | content |
/// |---|---|
/// | `LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES` | sockets from descriptor 3 on, for this process: sd_listen_fds(3) |
/// | `NOTIFY_SOCKET` | the socket of a service manager: sd_notify(3) |
/// | `WATCHDOG_PID`, `WATCHDOG_USEC` | the interval of its watchdog: sd_watchdog_enabled(3) |
/// | `HTTPWARE_HANDOVER` | sockets of the gateway that this one replaces: `Successor` |
public struct Inheritance: Sendable {
    /// No resources; no other process can replace this gateway.
    public static let none = Inheritance()

    /// The command line of the program, from which a process that replaces this one is started. Empty if that is
    /// impossible.
    let command: [String]
    /// The environment variables of the process, without the ones above.
    let environment: [String: String]
    let manager: ServiceManager?
    var sockets: [InheritedSocket] = []
    /// The descriptor for telling the former gateway that this one serves; `nil` if this one replaces no gateway.
    private(set) var predecessor: Int32?

    /// The first descriptor that a service manager passes.
    private static let first: Int32 = 3
    private static let variables = [
        "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDS", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID",
        "WATCHDOG_USEC",
        Successor.variable,
    ]

    private init() {
        command = []
        environment = [:]
        manager = nil
    }

    /// Takes the resources that the variables name, for a process of that command. Prepares each socket for accepting.
    ///
    /// Resources for another process are left alone. Throws `InheritanceError` if a variable or a socket is invalid.
    init(
        _ variables: [String: String], command: [String], process: pid_t = getpid(), parent: pid_t = getppid()
    ) throws {
        self.command = command
        environment = variables.filter { !Inheritance.variables.contains($0.key) }
        manager = variables["NOTIFY_SOCKET"].flatMap { socket in
            guard socket.hasPrefix("/") || socket.hasPrefix("@"), socket.utf8.count > 1 else { return nil }
            return ServiceManager(socket: socket, watchdog: Inheritance.watchdog(variables, process))
        }
        if let handover = variables[Successor.variable] {
            try takeHandover(handover, parent: parent)
        } else if variables["LISTEN_PID"] == String(process) {
            try takeManagersSockets(variables["LISTEN_FDS"] ?? "", named: variables["LISTEN_FDNAMES"] ?? "")
        }
    }

    /// Takes the resources that the variables of this process name, and removes the variables, so that no child
    /// inherits them. Call it before other threads exist.
    public static func take(_ variables: [String: String], command: [String]) throws -> Inheritance {
        for variable in self.variables { unsetenv(variable) }
        return try Inheritance(variables, command: command)
    }

    private static func watchdog(_ variables: [String: String], _ process: pid_t) -> Duration? {
        guard let text = variables["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        if let id = variables["WATCHDOG_PID"], id != String(process) { return nil }
        return .microseconds(microseconds)
    }

    private mutating func takeManagersSockets(_ count: String, named names: String) throws(InheritanceError) {
        guard let count = Int32(count), (0...1024).contains(count) else {
            throw InheritanceError(description: "LISTEN_FDS: \"\(count)\" is not a number of sockets, 0 to 1024")
        }
        let names = names.split(separator: ":", omittingEmptySubsequences: false)
        for index in 0..<count {
            let name = Int(index) < names.count ? String(names[Int(index)]) : ""
            try takeDescriptor(Inheritance.first + index, name: name, isManagers: true)
        }
    }

    /// Reads `PARENT READY DESCRIPTOR=NAME …`, with `!` in place of `=` for sockets of a service manager.
    private mutating func takeHandover(_ handover: String, parent: pid_t) throws(InheritanceError) {
        let words = handover.split(separator: " ")
        guard words.count >= 2, words[0] == String(parent), let ready = Int32(words[1]), ready > 2 else { return }
        for word in words.dropFirst(2) {
            let digits = word.prefix { $0.isNumber }
            let rest = word.dropFirst(digits.count)
            guard let descriptor = Int32(digits), descriptor > 2, let mark = rest.first, mark == "=" || mark == "!"
            else {
                throw InheritanceError(description: "\(Successor.variable): \"\(word)\" is not a socket")
            }
            try takeDescriptor(descriptor, name: String(rest.dropFirst()), isManagers: mark == "!")
        }
        _ = fcntl(ready, F_SETFD, FD_CLOEXEC)
        takeSecret(ready)
        predecessor = ready
    }

    /// Takes the process secret that the former gateway has sent. An older version sends none.
    private func takeSecret(_ descriptor: Int32) {
        var secret = [UInt8](repeating: 0, count: ProcessSecret.count)
        guard recv(descriptor, &secret, secret.count, Int32(MSG_DONTWAIT)) == secret.count else { return }
        ProcessSecret.adopt(secret)
    }

    private mutating func takeDescriptor(_ descriptor: Int32, name: String, isManagers: Bool) throws(InheritanceError) {
        do throws(SystemError) {
            let address = try Socket.adopt(listener: descriptor)
            sockets.append(
                InheritedSocket(descriptor: descriptor, address: address, name: name, isManagers: isManagers))
        } catch {
            let shown = name.isEmpty ? "" : " (\(name))"
            throw InheritanceError(
                description:
                    "descriptor \(descriptor)\(shown) that was passed is not a listening stream socket: \(error); use ListenStream= in the socket unit"
            )
        }
    }

    /// Tells the former gateway, if there is one, that this one serves.
    mutating func tellPredecessor() {
        guard let predecessor else { return }
        self.predecessor = nil
        withUnsafeBytes(of: Successor.ready) { _ = Socket.write(predecessor, $0) }
        Socket.close(predecessor)
    }
}

/// An error: the inherited resources are invalid, or match no listener.
public struct InheritanceError: Error, CustomStringConvertible {
    public let description: String
}
