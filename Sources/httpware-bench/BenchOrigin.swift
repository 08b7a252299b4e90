import HttpWare

#if HTTPWARE_BENCH
    import Glibc
    import HttpWareClient
    import HttpWareTesting

    /// An origin server in a separate process, so that its CPU time is not counted as the clients'.
    struct BenchOrigin {
        /// The URL of the server.
        let url: String
        private let input: Int32
        private let process: pid_t

        /// Starts this program again as the server. Throws if the system cannot create a process or a pipe.
        init() throws(SystemError) {
            var input: [Int32] = [0, 0]
            var output: [Int32] = [0, 0]
            guard pipe(&input) == 0, pipe(&output) == 0 else { throw SystemError("pipe") }
            for descriptor in input + output { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_adddup2(&actions, input[0], 0)
            posix_spawn_file_actions_adddup2(&actions, output[1], 1)
            var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("httpware-bench"), strdup("origin"), nil]
            defer { for argument in arguments { free(argument) } }
            var process: pid_t = 0
            guard posix_spawn(&process, "/proc/self/exe", &actions, nil, &arguments, environ) == 0 else {
                throw SystemError("posix_spawn")
            }
            close(input[0])
            close(output[1])
            var line = [UInt8](repeating: 0, count: 32)
            let count = read(output[0], &line, line.count)
            close(output[0])
            guard count > 1 else { throw SystemError("read") }
            url = "http://127.0.0.1:\(String(decoding: line[..<(count - 1)], as: UTF8.self))"
            self.input = input[1]
            self.process = process
        }

        /// Ends the server, and waits for its end.
        func stop() {
            close(input)
            waitpid(process, nil, 0)
        }

        /// Runs in the other process: serves until its input ends.
        static func serve() throws {
            let origin = try LocalOrigin(keepsRequests: false) { request in
                HttpResponse(
                    .ok, fields: ["Content-Type": "application/json"],
                    content: .bytes(request.path == "/note" ? BenchNote.content : BenchPage.content))
            }
            print(origin.port)
            fflush(nil)
            var byte: UInt8 = 0
            while read(0, &byte, 1) > 0 {}
        }
    }
#endif
