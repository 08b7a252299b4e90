import Foundation

/// A run of a system tool. It has no standard input, so that it cannot ask questions.
enum ToolRun {
    /// The exit status and the output of a tool.
    struct Result {
        let status: Int32
        let output: String
        let errors: String

        /// The first line that it wrote, for people; standard error comes first.
        var reason: String {
            let lines = (errors + "\n" + output).split(whereSeparator: \.isNewline)
            return lines.first { !$0.allSatisfy(\.isWhitespace) }.map(String.init) ?? "exit status \(status)"
        }
    }

    /// Runs a tool to its end; `nil` if it cannot be started.
    static func run(_ command: [String], environment: [String: String]? = nil) -> Result? {
        let process = Process()
        process.executableURL = URL(filePath: command[0])
        process.arguments = Array(command.dropFirst())
        if let environment { process.environment = environment }
        let (output, errors) = (Pipe(), Pipe())
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        guard (try? process.run()) != nil else { return nil }
        // Both are read at the same time, because a tool blocks when a pipe is full. Unsafe: this thread reads the
        // value only after the other thread has signalled that it is written.
        nonisolated(unsafe) var error = Data()
        let hasRead = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            error = errors.fileHandleForReading.readDataToEndOfFile()
            hasRead.signal()
        }
        let text = output.fileHandleForReading.readDataToEndOfFile()
        hasRead.wait()
        process.waitUntilExit()
        return Result(
            status: process.terminationStatus, output: String(decoding: text, as: UTF8.self),
            errors: String(decoding: error, as: UTF8.self))
    }

    /// The output of a tool that succeeds.
    static func output(_ command: [String], environment: [String: String]? = nil) -> String? {
        run(command, environment: environment).flatMap { $0.status == 0 ? $0.output : nil }
    }
}
