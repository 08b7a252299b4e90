import Glibc
import HttpWare
import Synchronization

/// Starts a program, asks for its wishes, passes its output to the log, starts it again, and ends it.
///
/// Unchecked: all of its state, except for the mutex, is used on its own loop only. The loop runs from the first start to the end.
final class ProgramSupervisor: @unchecked Sendable {
    private let settings: CalloutProgram.Settings
    private let board: ProgramBoard
    private let life = Mutex(Life())

    /// The loop of the supervisor, and whether it may still get work.
    private struct Life {
        var loop: EventLoop?
        var isOver = false
        var isStarted = false
        var waits: [LoopWait<Void>] = []
    }

    private var state = ProgramState(seed: .random(in: .min ... .max))
    private var transport: LoopTransport?
    private var place: ProgramPlace?
    private var process: StartedProcess?
    private var output = ProgramOutput()
    private var started = LoopInstant(nanoseconds: 0)
    private var timer: LoopTimer?
    private var call: (any HttpCall)?

    /// The maximum content of the first answer.
    private static let largestHello = ByteCount.kibibytes(64)

    init(_ settings: CalloutProgram.Settings, _ board: ProgramBoard) {
        self.settings = settings
        self.board = board
    }

    // MARK: From any thread

    /// Starts the program, unless that was done before.
    func start() {
        let loop: EventLoop? = life.withLock { life in
            guard !life.isStarted, !life.isOver else { return nil }
            life.isStarted = true
            do {
                life.loop = try EventLoop.start(name: "callout")
            } catch {
                board.set(.down("\(settings.name) cannot be started: \(error)"))
            }
            return life.loop
        }
        loop?.execute { self.begin() }
    }

    /// Ends the program. Returns at once.
    func end() {
        let loop = life.withLock { life in
            defer { life.isOver = life.isOver || life.loop == nil }
            return life.loop
        }
        loop?.execute { self.handle(.unwanted) }
    }

    /// Ends the program, and returns when it has ended.
    func endAndWait() async {
        let wait = LoopWait<Void>()
        let isRunning = life.withLock { life in
            guard !life.isOver, life.loop != nil else { return false }
            life.waits.append(wait)
            return true
        }
        guard isRunning else { return end() }
        end()
        try? await wait.value()
    }

    /// Notices the end of the process, if it has ended.
    func lookAtEnd() async throws {
        guard let loop = life.withLock({ $0.isOver ? nil : $0.loop }) else { return }
        let wait = LoopWait<Void>()
        loop.execute {
            self.process?.checkEnd()
            wait.resume(returning: ())
        }
        try await wait.value(within: .seconds(1), else: ())
    }

    // MARK: On the loop

    private var loop: EventLoop? { life.withLock { $0.loop } }

    private func begin() {
        guard let loop else { return }
        transport = LoopTransport(loop: loop, resolver: nil)
        handle(.wanted)
    }

    private func handle(_ event: ProgramState.Event) {
        for action in state.handle(event) {
            switch action {
            case .start: startProcess()
            case .pause(let duration): after(duration, .pauseEnded)
            case .terminate:
                process?.signal(SIGTERM)
                after(ProgramState.grace, .graceEnded)
            case .kill: process?.signal(SIGKILL)
            case .finish: finish()
            }
        }
    }

    private func after(_ duration: Duration, _ event: ProgramState.Event) {
        timer?.cancel()
        timer = loop?.schedule(after: duration) { self.handle(event) }
    }

    private func report(_ level: WareLog.Level, _ text: String) {
        settings.log.log(level, "callout \(settings.name): \(text)")
    }

    private func startProcess() {
        board.set(.starting)
        do {
            try launch()
            ask()
        } catch {
            board.set(.down("\(settings.name) cannot be started: \(error)"))
            report(.error, "cannot be started: \(error)")
            handle(.startFailed)
        }
    }

    private func launch() throws {
        guard let loop else { return }
        let place = try self.place ?? ProgramPlace(host: settings.host)
        if self.place == nil { board.client = SideCaller(to: Endpoint(unixPath: place.path)) }
        self.place = place
        var launch = ProcessLaunch(
            settings.command.map { $0 == CalloutProgram.Settings.hostPlace ? place.hostPath : $0 })
        launch.variables = ["HTTPWARE_CALLOUT_FD": "3"]
        launch.folder = settings.folder
        launch.socket = place.listener
        started = loop.now
        output = ProgramOutput()
        let process = try StartedProcess(launch, on: loop) { [weak self] bytes in
            self?.log { $0.take(bytes, now: $1) }
        } ended: {
            self.ended($0)
        }
        self.process = process
        report(.info, "started as process \(process.id)")
    }

    private func log(_ take: (inout ProgramOutput, LoopInstant) -> [String]) {
        guard let loop else { return }
        for line in take(&output, loop.now) { report(.notice, line) }
    }

    private func ended(_ end: ProcessEnd) {
        guard let loop else { return }
        log { $0.finish(now: $1) }
        process = nil
        call?.cancel()
        call = nil
        let wasUp = state.isUp
        board.set(.down("\(settings.name) has ended with \(end)"))
        report(wasUp ? .error : .info, "ended with \(end)")
        handle(.ended(ran: loop.now - started))
    }

    // MARK: The first message

    private func ask() {
        guard let place,
            var request = try? HttpRequest(.post, "http://localhost/", fields: ["Content-Type": "application/json"])
        else { return }
        request.content = .bytes(CalloutHello.message(options: settings.options))
        // A connection that stays open would keep a program busy that serves one at a time.
        let client = SideCaller(to: Endpoint(unixPath: place.path), keepsConnections: false)
        let limits = CallLimits(timeout: settings.startTimeout, content: ProgramSupervisor.largestHello)
        call = client.start(request, limits: limits) { [weak self] in self?.answered($0) }
    }

    private func answered(_ result: Result<HttpResponse, GatewayError>) {
        call = nil
        guard state.isUp else { return }
        switch result {
        case .failure(let error):
            // A program that has ended is reported as that.
            if process?.checkEnd() == true { return }
            board.set(.down("\(settings.name) gave no first answer: \(error.reason)"))
            report(.error, "no first answer: \(error.reason)")
            handle(.wasSilent)
        case .success(let response):
            do throws(CalloutFault) {
                guard response.status == .ok else {
                    throw .wrong("the first answer has the status \(response.status.code) in place of 200")
                }
                let hello = try CalloutHello(response.content.bytes ?? [])
                if let error = hello.error { throw .wrong(error) }
                board.set(.ready(hello.applied(to: settings.wants)))
            } catch {
                board.set(.refusing("\(settings.name): \(error.reason)"))
                report(.error, error.reason)
            }
            handle(.answered)
        }
    }

    // MARK: The end

    private func finish() {
        timer?.cancel()
        timer = nil
        call?.cancel()
        call = nil
        board.set(.refusing("\(settings.name) has been ended"))
        place = nil
        transport?.closeIdle()
        let (loop, waits) = life.withLock { life in
            life.isOver = true
            defer {
                life.loop = nil
                life.waits = []
            }
            return (life.loop, life.waits)
        }
        for wait in waits { wait.resume(returning: ()) }
        transport = nil
        loop?.stop()
    }
}

/// A folder of this process alone with the socket of a program, and with the file that it runs, if that comes from the gateway. Its end removes all.
final class ProgramPlace {
    /// The socket on which the program accepts; it listens already.
    let listener: Int32
    /// The path of the socket.
    var path: String { ProgramPlace.socket(in: folder) }
    /// The path of the file.
    var hostPath: String { ProgramPlace.host(in: folder) }

    private let folder: String

    static func socket(in folder: String) -> String { "\(folder)/callout.sock" }
    static func host(in folder: String) -> String { "\(folder)/addon_host.py" }

    /// Why there is no place.
    private struct Trouble: Error, CustomStringConvertible {
        let description: String
    }

    /// Makes the folder below `$TMPDIR`, or below `/tmp` if that path is too long for a socket.
    init(host: [UInt8]?) throws {
        var base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        if base.isEmpty || base.utf8.count > 70 { base = "/tmp" }
        var template = Array("\(base)/httpware-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Trouble(description: "a folder cannot be made in \(base): \(SystemError.text(of: errno))")
        }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        ProgramPlaces.add(folder)
        do {
            listener = try Socket.listen(on: .unix(path: ProgramPlace.socket(in: folder)), backlog: 1024, mode: 0o600)
        } catch {
            ProgramPlaces.remove(folder)
            throw Trouble(description: "its socket cannot be made: \(error)")
        }
        // Programs expect a socket on which accepting waits.
        _ = fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) & ~O_NONBLOCK)
        guard let host else { return }
        guard let file = fopen(hostPath, "we") else {
            throw Trouble(description: "its file cannot be written: \(SystemError.text(of: errno))")
        }
        let written = fwrite(host, 1, host.count, file)
        guard fclose(file) == 0, written == host.count else {
            throw Trouble(description: "its file cannot be written: \(SystemError.text(of: errno))")
        }
    }

    deinit {
        Socket.close(listener)
        ProgramPlaces.remove(folder)
    }
}

/// The folders of programs, which are removed at the latest when this process exits.
private enum ProgramPlaces {
    private static let all = Mutex<Set<String>>([])
    private static let atExit: Void = {
        atexit { ProgramPlaces.removeAll() }
        return ()
    }()

    static func add(_ folder: String) {
        _ = atExit
        all.withLock { _ = $0.insert(folder) }
    }

    static func remove(_ folder: String) {
        guard all.withLock({ $0.remove(folder) }) != nil else { return }
        unlink(ProgramPlace.socket(in: folder))
        unlink(ProgramPlace.host(in: folder))
        rmdir(folder)
    }

    private static func removeAll() {
        for folder in all.withLock({ $0 }) { remove(folder) }
    }
}
