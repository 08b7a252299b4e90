import Testing

/// Waits until the condition holds, and records an issue if it does not within 40 seconds of real time.
///
/// For what another process or another thread does: sockets and servers have no manual clock.
func eventually(_ isSo: () async throws -> Bool) async throws {
    for _ in 0..<8000 {
        if try await isSo() { return }
        try await Task.sleep(for: .milliseconds(5))
    }
    Issue.record("the condition never held")
}
