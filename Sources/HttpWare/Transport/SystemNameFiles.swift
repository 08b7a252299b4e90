/// The state of the system's files about names: enough to detect a change without reading them, as the system's own resolver does.
struct SystemNameFiles: Equatable {
    /// The file that lists the name servers; `nil` if it does not exist.
    let servers: FileStatus?
    /// The hosts file; `nil` if it does not exist.
    let hosts: FileStatus?

    /// How often they are looked at, at most.
    static let interval = Duration.seconds(1)

    /// Looks at the files. Symbolic links are followed, so a link to another file is a change.
    init(servers: String, hosts: String) {
        self.servers = FileStatus(path: servers)
        self.hosts = FileStatus(path: hosts)
    }
}
