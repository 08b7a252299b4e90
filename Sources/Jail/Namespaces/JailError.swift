import CJailShims
import Glibc
import HttpWare

/// Why no program can be started behind a wall. Nothing is left of the attempt.
public struct JailError: Error, Equatable, CustomStringConvertible {
    /// The step that failed: a value of `cjail_step`.
    let step: Int32
    /// Its `errno`.
    let code: Int32
    /// The value of a kernel setting such as `user.max_user_namespaces`; `nil` if the kernel lacks it.
    private let setting: @Sendable (String) -> Int?

    init(step: Int32, code: Int32, setting: @escaping @Sendable (String) -> Int? = JailError.setting) {
        self.step = step
        self.code = code
        self.setting = setting
    }

    public static func == (one: JailError, other: JailError) -> Bool {
        one.step == other.step && one.code == other.code
    }

    /// One sentence, which names the setting that forbids it.
    public var description: String {
        let text = SystemError.text(of: code)
        if code == EMFILE || code == ENFILE { return "no file descriptors are left; raise the limit (ulimit -n)" }
        switch UInt32(bitPattern: step) {
        case CJAIL_NAMESPACES.rawValue: return namespaces(text)
        case CJAIL_USERS.rawValue where code == ENOENT:
            return "/proc does not show the new process; mount proc at /proc"
        case CJAIL_USERS.rawValue, CJAIL_ROUTES.rawValue:
            if code == EPERM || code == EACCES, let text = appArmor { return text }
            return step == Int32(bitPattern: CJAIL_USERS.rawValue)
                ? "the user cannot be mapped to itself in a user namespace: \(text)"
                : "the routes of the network namespace cannot be made: \(text)"
        case CJAIL_LISTEN.rawValue: return "the ports inside the network namespace cannot be listened on: \(text)"
        case CJAIL_FAMILIES.rawValue:
            return "the kernel takes no seccomp filter, without which sockets could leave the namespace: \(text)"
        case CJAIL_PASS.rawValue: return "the listeners inside cannot be passed out: \(text)"
        default: return "no process can be started: \(text)"
        }
    }

    private func namespaces(_ text: String) -> String {
        switch code {
        case ENOSPC, EUSERS:
            let name =
                ["user.max_user_namespaces", "user.max_net_namespaces"].first { setting($0) == 0 }
                ?? "user.max_user_namespaces"
            return "the kernel allows no further namespaces; raise \(name) (sysctl)"
        case EPERM, EACCES:
            if setting("kernel.unprivileged_userns_clone") == 0 {
                return
                    "the kernel lets only root make user namespaces; set kernel.unprivileged_userns_clone to 1 (sysctl), or run this as root"
            }
            return appArmor
                ?? "this process is not allowed to make user namespaces; a container needs a seccomp profile that allows unshare"
        case EINVAL, ENOSYS: return "the kernel is built without user or network namespaces"
        default: return "user and network namespaces cannot be made: \(text)"
        }
    }

    private var appArmor: String? {
        guard setting("kernel.apparmor_restrict_unprivileged_userns") == 1 else { return nil }
        return
            "AppArmor leaves user namespaces without rights; set kernel.apparmor_restrict_unprivileged_userns to 0 (sysctl), or run this as root"
    }

    /// Reads a setting of the kernel.
    @Sendable static func setting(_ name: String) -> Int? {
        let path = "/proc/sys/" + name.split(separator: ".").joined(separator: "/")
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 32)
        guard fgets(&buffer, Int32(buffer.count), file) != nil else { return nil }
        let text = buffer.prefix { $0 != 0 && $0 != 0x0a }.map { UInt8(bitPattern: $0) }
        return Int(String(decoding: text, as: UTF8.self))
    }
}
