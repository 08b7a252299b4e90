public import GatewayConfig
public import HttpWare
import Synchronization

/// Asks the sources of services once, before a gateway runs, or for a command.
public struct FirstLook: Sendable {
    /// The programs that were found.
    public let instances: [FoundInstance]
    /// Why sources could not be asked, such as `docker: unix:/var/run/docker.sock: no such file or directory`.
    public let failures: [String]

    /// How long the sources have to answer.
    public static let patience = Duration.seconds(3)

    /// Asks the sources of that definition, and waits until each has answered or failed. Must not be called on a loop.
    public init(_ definition: DiscoverDefinition, within patience: Duration = FirstLook.patience) throws(SystemError) {
        let loop = try EventLoop(name: "discover")
        let transport = LoopTransport(loop: loop, resolver: try? Resolver(loop: loop))
        // All of this is used on this thread only, while the loop runs.
        let answers = Answers()
        loop.later {
            let sources = ServiceSources.all(definition, on: loop)
            answers.sources = sources
            var left = sources.count
            for source in sources {
                var isOpen = true
                let end = {
                    guard isOpen else { return }
                    isOpen = false
                    left -= 1
                    if left == 0 { loop.stop() }
                }
                source.start(
                    found: {
                        if isOpen { answers.instances += $0 }
                        end()
                    },
                    failed: {
                        if isOpen { answers.failures.append("\(source.name): \($0)") }
                        end()
                    })
            }
            if sources.isEmpty { loop.stop() }
            answers.timer = loop.schedule(after: patience) {
                answers.failures.append("no answer within \(patience.optionText)")
                loop.stop()
            }
        }
        loop.run()
        for source in answers.sources { source.stop() }
        answers.timer?.cancel()
        transport.closeIdle()
        instances = answers.instances
        failures = answers.failures
    }

    /// Used on one thread.
    private final class Answers {
        var sources: [any ServiceSource] = []
        var instances: [FoundInstance] = []
        var failures: [String] = []
        var timer: LoopTimer?
    }
}
