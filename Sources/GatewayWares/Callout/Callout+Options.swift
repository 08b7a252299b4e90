import CAddonHost
import Glibc
public import HttpWare
import Wares

extension Callout: ConfigurableWare {
    public static let name: WareName = "callout"
    public static let about = WareAbout(
        "Lets a program in any language decide about requests and responses: over HTTP, started by the gateway or running elsewhere.",
        source: "Envoy ext_proc, mitmproxy",
        example: #"""
            - callout: { command: [python3, decide.py], response: true, content: { response: 1MiB } }
            - callout: { url: "unix:/run/decide.sock", timeout: 200ms, onError: closed }
            - callout: { url: "http://127.0.0.1:9092/decide" }
            - callout: { mitmproxy: conf/wares/addon.py, options: { header: X-Customer } }
            """#,
        details: #"""
            For each half that it decides about, the program gets one POST request with a JSON object about the exchange, and
            answers 200 with a JSON object: `{}` passes the message, other members change it, and `respond` answers the client.
            The article about callouts describes both objects.

            With `command`, the gateway starts the program, which accepts connections on its descriptor 3. Its output becomes
            lines of the gateway's log. If it ends, it is started again after 100ms, and after up to 30s if it keeps ending. It is
            ended with the gateway, or when a reload removes or changes the ware. Relative paths are relative to the
            configuration file, also those in the command. A file that the command names is part of the configuration:
            if its content has changed, a reload starts the program again. The program can choose its halves and its content in
            its first answer.

            With `mitmproxy`, the gateway runs an addon that was written for mitmproxy, in Python 3.11 or later of this machine:
            hooks for HTTP, `HTTPFlow`, `ctx.log` and options of the addon, to which `options` gives values. If an
            addon uses anything else, each request fails, and the log says why. A changed addon is loaded again without a reload.

            With `url`, the server runs already. Connections are kept, and several are used at the same time.

            If the program does not answer in time, requests get 503. A wrong answer causes 500. On the way back, both
            cause 502. With `onError: open`, the exchange continues unchanged. Content that is larger than `content` allows
            is refused with 413, or 502 on the way back. The content of events (`text/event-stream`) is never shown. At most
            1,000 calls run at the same time.
            """#,
        otherNames: ["extProc", "externalProcessing", "icap", "addon", "subprocess", "exec"])

    public init(options: inout OptionsReader) {
        var url: CalloutAddress?
        var command: [Located<String>]?
        var addon: Located<FilePath>?
        var wants = CalloutWants()
        var timeout = Duration.seconds(1)
        var startTimeout = CalloutProgram.Settings(command: []).startTimeout
        var mode = FailureMode.closed
        var mostAnswer: ByteCount?
        options.read(
            "url", into: &url, doc: "server that decides: http://host:port/path, or unix:/path of its socket")
        options.read("command", into: &command, doc: "program to start, and its arguments")
        options.read("mitmproxy", into: &addon, doc: "file with an addon for mitmproxy, which Python runs")
        options.requireOne(of: "url", "command", "mitmproxy")
        options.refuseEmpty("command", "write the program and its arguments")
        options.read("request", into: &wants.request, doc: "asks about requests, before they go upstream")
        options.read("response", into: &wants.response, doc: "asks about responses")
        options.read("content", doc: "content that the program sees; without it, content streams past") {
            wants.requestContent = Callout.readSize("request", "maximum content of a request", &$0)
            wants.responseContent = Callout.readSize("response", "maximum content of a response", &$0)
        }
        options.read(
            "timeout", into: &timeout, in: .milliseconds(1) ... .seconds(3600), doc: "maximum duration of one call")
        options.read("onError", into: &mode, doc: "the treatment of an exchange about which the program cannot decide")
        options.read(
            "maxAnswer", into: &mostAnswer, in: .kibibytes(1) ... .mebibytes(100),
            doc: "maximum size of an answer; by default `1MiB` and six times the content that the program may see")
        options.read(
            "startTimeout", into: &startTimeout, in: .milliseconds(100) ... .seconds(600),
            doc: "how long a started program may take until its first answer; meanwhile requests wait")
        let given = options.readNode(
            "options", type: "map", doc: "values for the program, which it gets in its first message")
        options.useless(
            "startTimeout", "options", with: "url", hint: "only a program that the gateway starts gets them")
        if options.isGiven("url"), !wants.request, !wants.response {
            options.fail(at: "request", "is false, and response as well; the ware does nothing")
        }
        if let given, given.entries == nil { options.fail(at: "options", "\(given.shown) is not a map") }
        if case .http(let url) = url, !url.isSafe {
            options.warn(at: "url", "messages are sent in clear text; write https, or a Unix socket")
        }

        var caller: CalloutCaller?
        if let url {
            caller = url.request.map {
                CalloutCaller(
                    .server(url.client, name: url.text), $0, inCases: url.caseRequest, wants: wants, timeout: timeout,
                    mostAnswer: mostAnswer)
            }
        } else if let place = addon?.location ?? command?.first?.location {
            var settings = CalloutProgram.Settings(command: command?.map(\.value) ?? [])
            settings.folder = Callout.folder(of: place, &options)
            if let addon { Callout.setAddon(addon.value.path, of: &settings, &options) }
            settings.options = given?.jsonValue ?? .object([])
            settings.wants = wants
            settings.startTimeout = startTimeout
            if addon == nil { Callout.noteFiles(of: settings, &options) }
            caller = Callout.caller(settings, timeout: timeout, mostAnswer: mostAnswer)
        }
        self.init(
            caller, mayWantResponses: wants.response || url == nil, failsOpen: mode == .open)
    }

    /// Calls a program that the gateway starts.
    static func caller(
        _ settings: CalloutProgram.Settings, timeout: Duration, mostAnswer: ByteCount?
    ) -> CalloutCaller? {
        CalloutAddress.message("http://localhost/").map {
            CalloutCaller(
                .program(CalloutProgram(settings)), $0, inCases: settings.caseRequest, wants: settings.wants,
                timeout: timeout, mostAnswer: mostAnswer)
        }
    }

    /// Makes the settings run an addon by the program in `CAddonHost`. The program itself notices a changed addon.
    private static func setAddon(
        _ path: String, of settings: inout CalloutProgram.Settings, _ options: inout OptionsReader
    ) {
        // The program runs in the folder of the configuration file, and `~/` is replaced here.
        settings.command = ["python3", "-B", CalloutProgram.Settings.hostPlace, FilePath.joined("", path)]
        settings.host = Array(UnsafeBufferPointer(start: caddonhost_bytes(), count: caddonhost_count()))
        let file = FilePath.joined(settings.folder ?? "", path)
        if FileGate.refusal == nil, digest(of: file) == nil {
            options.fail(at: "mitmproxy", "\(file.quotedForErrors) cannot be read")
        }
    }

    private static func readSize(_ key: String, _ doc: String, _ options: inout OptionsReader) -> Int? {
        var size: ByteCount?
        options.read(key, into: &size, in: .bytes(1)...CalloutWants.largest, doc: doc)
        return size?.bytes
    }

    /// The folder of the configuration file; `nil` for a configuration that is in no file.
    private static func folder(of location: SourceLocation, _ options: inout OptionsReader) -> String? {
        let folder = FilePath.directory(of: options.joined("x", writtenIn: location.file))
        return folder.isEmpty ? nil : folder
    }

    /// The largest file whose content is compared at a reload.
    private static let largestFile = 16 << 20

    /// Notes the files that a command names, so that a reload starts the program again when one has changed.
    private static func noteFiles(of settings: CalloutProgram.Settings, _ options: inout OptionsReader) {
        guard !options.isDescribing, FileGate.refusal == nil else { return }
        for (index, argument) in settings.command.enumerated() where index > 0 || argument.utf8.contains(0x2f) {
            let path = FilePath.joined(settings.folder ?? "", argument)
            guard !argument.isEmpty, !argument.utf8.contains(0), !argument.hasPrefix("-"),
                let digest = digest(of: path)
            else { continue }
            options.noteFile(path, content: digest)
        }
    }

    /// The digest of a regular file's content; `nil` if it is not one, or too large.
    private static func digest(of path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size <= largestFile else {
            return nil
        }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while content.count <= largestFile {
            let count = read(descriptor, &buffer, buffer.count)
            if count == 0 { return content.withUnsafeBytes { Digest256(of: $0).withBytes { Array($0) } } }
            if count < 0, errno != EINTR { return nil }
            if count > 0 { content += buffer[..<count] }
        }
        return nil
    }
}

/// The address of a server that decides: a URL, or a Unix socket.
enum CalloutAddress: Sendable, Hashable {
    case http(HttpUrl)
    case unix(path: String)

    /// The request that carries each message.
    var request: HttpRequest? {
        switch self {
        case .http(let url): CalloutAddress.message(url.text)
        case .unix: CalloutAddress.message("http://localhost/")
        }
    }

    /// The request in a test run: a Unix socket has the URL of its path.
    var caseRequest: HttpRequest? {
        switch self {
        case .http: nil
        case .unix(let path): CalloutAddress.caseMessage(path)
        }
    }

    /// The client for the address.
    var client: any HttpClient {
        switch self {
        case .http: SideCaller()
        case .unix(let path): SideCaller(to: Endpoint(unixPath: path))
        }
    }

    var text: String {
        switch self {
        case .http(let url): url.text
        case .unix(let path): "unix:\(path)"
        }
    }

    /// The request to a receiver without a URL, in a test run.
    static func caseMessage(_ path: String) -> HttpRequest? {
        message("http://localhost\(PercentText.text(path) { PercentText.isUnreserved($0) || $0 == 0x2f })")
    }

    static func message(_ url: String) -> HttpRequest? {
        try? HttpRequest(.post, url, fields: ["Content-Type": "application/json", "Accept": "application/json"])
    }
}

extension CalloutAddress: OptionValue {
    static let optionType = "URL or Unix socket"
    static var optionForm: OptionForm { .either([HttpUrl.optionForm, .pattern("unix:.+")]) }
    var optionText: String { text }

    init(optionText: String) throws(OptionMistake) {
        let hint = "write http://127.0.0.1:9092/decide or unix:/run/decide.sock"
        if optionText.hasPrefix("unix:") {
            guard case .unix(let path) = SocketAddress(optionText) else { throw OptionMistake(hint) }
            self = .unix(path: path)
        } else {
            do throws(OptionMistake) {
                self = .http(try HttpUrl(optionText: optionText))
            } catch {
                throw OptionMistake(hint)
            }
        }
    }
}
