import CJailShims
import Glibc
public import HttpWare

/// A child process in user and network namespaces of its own. Its listeners are there before it runs its program.
///
/// The user is itself inside. The process has no descriptors but 0 to 2, and no way to other machines: every address is its own.
public final class JailedProcess {
    /// The id of the process.
    public let id: Int32
    /// The ports and names that it can reach.
    public let plan: JailPlan
    private var child: cjail_child
    private var hasDescriptors = true
    private var isWaiting = true

    /// Makes the namespaces and a process in them, which waits for `run()`. The command is found by `PATH`; `mask`
    /// points to its signal mask, a `sigset_t`.
    public init(
        _ command: [String], environment: [String: String], mask: UnsafeRawPointer, plan: JailPlan
    ) throws(JailError) {
        self.plan = plan
        let listeners = plan.listeners.map(\.system)
        var arguments = command.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        var child = cjail_child()
        let code = NetlinkMessages.all.withUnsafeBytes { messages in
            listeners.withUnsafeBufferPointer { listeners in
                arguments.withUnsafeMutableBufferPointer { arguments in
                    variables.withUnsafeMutableBufferPointer { variables in
                        var order = cjail_order(
                            arguments: arguments.baseAddress, variables: variables.baseAddress, mask: mask,
                            messages: messages.baseAddress, messages_count: messages.count,
                            listeners: listeners.baseAddress, listeners_count: Int32(listeners.count))
                        return cjail_start(&order, &child)
                    }
                }
            }
        }
        guard code == 0 else { throw JailError(step: child.step, code: child.error) }
        self.child = child
        id = child.process
    }

    /// Ends the process if it still waits.
    deinit {
        if hasDescriptors { for descriptor in takeDescriptors() { Socket.close(descriptor) } }
        guard isWaiting else { return }
        Socket.close(child.channel)
        while waitpid(id, nil, 0) < 0, errno == EINTR {}
    }

    /// The descriptors of the listeners, which the caller owns from now on.
    func takeDescriptors() -> [Int32] {
        guard hasDescriptors else { return [] }
        hasDescriptors = false
        return withUnsafeBytes(of: child.descriptors) {
            Array($0.bindMemory(to: Int32.self).prefix(plan.listeners.count))
        }
    }

    /// Lets the process run its program. Throws if the program cannot be run; the process then ends. The caller waits for its end.
    public func run() throws(SystemError) {
        isWaiting = false
        let code = cjail_release(&child)
        guard code != 0 else { return }
        while waitpid(id, nil, 0) < 0, errno == EINTR {}
        throw SystemError("execvpe", code: code)
    }
}

extension JailPlan.Listener {
    /// The listener as the shim takes it.
    fileprivate var system: cjail_listener {
        switch purpose {
        case .host, .streamNames: cjail_listener(port: port, is_datagram: 0, loopback: 0)
        case .datagramNames: cjail_listener(port: port, is_datagram: 1, loopback: 0)
        case .exposed(_, let isIPv4): cjail_listener(port: port, is_datagram: 0, loopback: isIPv4 ? 4 : 6)
        }
    }
}
