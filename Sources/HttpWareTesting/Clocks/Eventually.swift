import Glibc
import HttpWare

/// A condition did not hold in time.
package struct NeverHeld: Error, CustomStringConvertible {
    package let description: String

    fileprivate init(_ patience: Duration, _ file: String, _ line: Int) {
        description = "\(file):\(line): the condition did not hold within \(patience)"
    }
}

/// Waits until the condition holds, for events of other threads and processes: sockets, files and servers have no manual clock.
///
/// It is asked after each pause of real time, as often as pauses fit into `patience`; on a busy machine, that takes longer. Then an error
/// is thrown.
package func eventually(
    within patience: Duration = .seconds(60), every pause: Duration = .milliseconds(5), file: String = #fileID,
    line: Int = #line, _ isSo: () async throws -> Bool
) async throws {
    for _ in 0...Int(patience / pause) {
        if try await isSo() { return }
        try await Task.sleep(for: pause)
    }
    throw NeverHeld(patience, file, line)
}

/// Waits as `eventually` does, and blocks the thread meanwhile.
package func eventuallyBlocking(
    within patience: Duration = .seconds(60), every pause: Duration = .milliseconds(5), file: String = #fileID,
    line: Int = #line, _ isSo: () throws -> Bool
) throws {
    for _ in 0...Int(patience / pause) {
        if try isSo() { return }
        usleep(UInt32(pause / .microseconds(1)))
    }
    throw NeverHeld(patience, file, line)
}

/// Waits until the value is the same in four looks, for an end that nothing tells: a sender that is no longer read. Answers the value.
///
/// On a busy machine it may be too early, so only an upper bound of the value may be expected.
package func settledValue<Value: Equatable>(_ value: () -> Value) async throws -> Value {
    var former = value()
    var looks = 1
    try await eventually(every: .milliseconds(50)) {
        let present = value()
        looks = present == former ? looks + 1 : 1
        former = present
        return looks > 4
    }
    return former
}

/// Waits until the task is cancelled, and throws `CancellationError`: for an answer that never comes.
package func untilCancelled() async throws -> Never {
    let (endless, end) = AsyncStream.makeStream(of: Never.self)
    for await _ in endless {}
    withExtendedLifetime(end) {}
    throw CancellationError()
}
