import GatewayConfig
import HttpWare

/// Finds services that no file of the configuration names. It lives on one loop, and is used on that loop's thread only.
protocol ServiceSource: AnyObject {
    /// The name in reports and metrics: `docker` or `folder`.
    var name: String { get }

    /// Begins to look. `found` is called on the loop with everything that is there, first when that is known, and then after each change.
    /// `failed` is called on the loop when the source cannot be asked; then what was found before still holds.
    func start(found: @escaping ([FoundInstance]) -> Void, failed: @escaping (String) -> Void)

    /// Ends.
    func stop()
}

/// Sources by their definition.
enum ServiceSources {
    /// The sources of a definition, for that loop.
    static func all(_ definition: DiscoverDefinition, on loop: EventLoop) -> [any ServiceSource] {
        var sources: [any ServiceSource] = []
        if let docker = definition.docker { sources.append(DockerSource(docker, loop: loop)) }
        if let folder = definition.folder { sources.append(FolderSource("\(folder)", loop: loop)) }
        return sources
    }
}
