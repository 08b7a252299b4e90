import CJailShims
import Glibc
import Testing

@testable import Jail

@Suite struct JailErrorTests {
    private func text(_ step: cjail_step, _ code: Int32, _ settings: [String: Int] = [:]) -> String {
        JailError(step: Int32(bitPattern: step.rawValue), code: code) { settings[$0] }.description
    }

    @Test func `the setting that forbids namespaces is named`() {
        #expect(
            text(CJAIL_NAMESPACES, EPERM, ["kernel.unprivileged_userns_clone": 0])
                .contains("set kernel.unprivileged_userns_clone to 1"))
        #expect(text(CJAIL_NAMESPACES, EPERM).contains("seccomp"))
        #expect(
            text(CJAIL_NAMESPACES, ENOSPC, ["user.max_user_namespaces": 0]).contains("raise user.max_user_namespaces"))
        #expect(
            text(CJAIL_NAMESPACES, ENOSPC, ["user.max_net_namespaces": 0]).contains("raise user.max_net_namespaces"))
        #expect(text(CJAIL_NAMESPACES, EINVAL).contains("built without"))
    }

    @Test(arguments: [CJAIL_NAMESPACES, CJAIL_USERS, CJAIL_ROUTES])
    func `where AppArmor takes the rights of namespaces, its setting is named`(step: cjail_step) {
        let settings = ["kernel.apparmor_restrict_unprivileged_userns": 1]
        #expect(text(step, EPERM, settings).contains("set kernel.apparmor_restrict_unprivileged_userns to 0"))
        #expect(!text(step, EPERM).contains("AppArmor"))
    }

    @Test func `a missing proc and a full table of descriptors are named`() {
        #expect(text(CJAIL_USERS, ENOENT).contains("mount proc"))
        for step in [CJAIL_FORK, CJAIL_LISTEN, CJAIL_PASS] { #expect(text(step, EMFILE).contains("ulimit -n")) }
    }

    @Test func `each step has one sentence`() {
        for step in [
            CJAIL_FORK, CJAIL_NAMESPACES, CJAIL_USERS, CJAIL_ROUTES, CJAIL_LISTEN, CJAIL_PASS, CJAIL_FAMILIES,
            CJAIL_RUN,
        ] {
            for code in [EPERM, ENOENT, ENOSPC, EINVAL, ENOMEM, EADDRINUSE] {
                let sentence = text(step, code)
                #expect(!sentence.isEmpty && !sentence.contains("\n") && !sentence.hasSuffix("."))
            }
        }
    }

    @Test func `a setting of the kernel is read`() {
        #expect(JailError.setting("kernel.pid_max").map { $0 > 0 } == true)
        #expect(JailError.setting("kernel.no_such_setting") == nil)
    }
}
