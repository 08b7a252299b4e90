public import HttpWare

/// One program that a source of services found: a container of an engine, or the programs that a service file names.
public struct FoundInstance: Sendable, Equatable {
    /// The name of its service. Instances of one name are the endpoints of one service.
    public internal(set) var service: String
    /// The kind of the source: `docker` or `folder`.
    public let source: String
    /// The place for people: `container orders-1`, or the path of a file.
    public let place: String
    /// When it was made, in seconds since 1970: of two that claim the same, the older one has it.
    public let made: Int
    /// The addresses that take its requests; empty while it takes none.
    public internal(set) var addresses: [SocketAddress] = []
    /// Why it takes no requests; `nil` if it takes some.
    public internal(set) var unused: String?
    /// Whether nothing is made of it, because of its labels.
    public private(set) var isIgnored = false
    /// The text of its labels or its file, to compare them.
    let written: [String]
    /// The name that it has if it does not say one itself.
    let naturalName: String
    /// The options that were read from them.
    let options: FoundOptions

    /// Whether it says anything about its service.
    public var isLabelled: Bool { !written.isEmpty }

    /// Makes the instance of a container from its labels. `name` is the service's name if no label says another.
    public init(container: String, service name: String, made: Int, labels: [(key: String, value: String)]) {
        source = "docker"
        place = "container \(FoundInstance.name(from: container))"
        self.made = made
        let own = labels.filter { $0.key.hasPrefix(FoundOptions.prefix) }.sorted { $0.key < $1.key }
        written = own.map { "\($0.key)=\($0.value)" }
        options = FoundOptions(labels: own, of: place)
        naturalName = FoundInstance.name(from: name)
        service = options.name ?? naturalName
    }

    /// Makes the instance of a service file. `path` is its path, `name` the service's name if the file does not say another.
    public init(file path: String, service name: String, content: [UInt8]) {
        source = "folder"
        place = path
        written = [String(decoding: content, as: UTF8.self)]
        options = FoundOptions(file: content, path: path)
        made = options.made ?? 0
        naturalName = FoundInstance.name(from: name)
        service = options.name ?? naturalName
        addresses = options.endpoints
        if addresses.isEmpty { unused = options.mistakes.isEmpty ? "names no endpoint" : nil }
    }

    /// Whether both were found in the same state.
    public static func == (one: Self, other: Self) -> Bool {
        one.service == other.service && one.place == other.place && one.made == other.made
            && one.addresses == other.addresses && one.unused == other.unused && one.written == other.written
    }

    /// Makes the instance of a service file that cannot be read, for that reason.
    public init(file path: String, service name: String, unreadable reason: String) {
        source = "folder"
        place = path
        made = 0
        written = [reason]
        options = FoundOptions(mistake: reason, at: SourceLocation(file: path, line: 0, column: 0))
        naturalName = FoundInstance.name(from: name)
        service = naturalName
    }

    /// The port that its labels name; `nil` if they name none.
    public var port: Int? { options.port }
    /// The network that its labels name; `nil` if they name none.
    public var network: String? { options.network }
    /// Whether its labels say that it is not a service: `httpware.enable: false`.
    public var isOff: Bool { !options.isEnabled }

    /// Whether its labels or its file can be a service: they have no mistake, and nothing says that it is left alone.
    public var isService: Bool {
        !isIgnored && !isOff && !options.mistakes.contains { $0.severity == .error }
    }

    /// Uses these addresses, or none, for that reason.
    public mutating func use(_ addresses: [SocketAddress], unless reason: String?) {
        self.addresses = reason == nil ? addresses : []
        unused = reason
    }

    /// Ignores it, for that reason.
    public mutating func ignore(because reason: String) {
        use([], unless: reason)
        isIgnored = true
    }

    /// The text as the name of a service: every character that a name cannot have becomes `-`.
    static func name(from text: String) -> String {
        let bytes = text.utf8.prefix(ServiceName.longest).map { ServiceName.has($0) ? $0 : UInt8(ascii: "-") }
        return bytes.isEmpty ? "service" : String(decoding: bytes, as: UTF8.self)
    }
}

/// The letters of names that a configuration defines.
enum ServiceName {
    /// The maximum length in bytes.
    static let longest = 64

    /// Whether a name can have the byte.
    static func has(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
        default: false
        }
    }

    /// Whether the text is a name.
    static func isName(_ text: String) -> Bool {
        (1...longest).contains(text.utf8.count) && text.utf8.allSatisfy(has)
    }
}
