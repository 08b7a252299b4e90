/// Reads the options of a ware, or any map of a configuration, by key and type.
///
/// Mistakes are recorded and reading continues, so that all are reported at once; an invalid value leaves the
/// default unchanged. Read every key unconditionally: the same code, run with `describing`, provides the schema and the help.
///
/// ```swift
/// init(options: inout OptionsReader) {
///     self.init()
///     options.read("max", into: &max, in: .bytes(1) ... .gibibytes(1))
///     options.read("path") { options in
///         options.read("strip", into: &strip)
///         options.require("strip")
///     }
///     options.only("path", with: "mode", mode, is: .rewrite)
/// }
/// ```
public struct OptionsReader: Sendable {
    /// The place of these options, such as `bodyLimit` or `listeners.web.limits`; errors put it before the key.
    public let keyPath: String
    /// The start of the map.
    public let location: SourceLocation
    /// Whether the reader has no values and only records the requested keys.
    public let isDescribing: Bool
    /// Whether the map itself was written: not when describing, nor for a missing map in another one, whose required keys are not missing.
    public internal(set) var isWritten = true
    /// Whether a map was written, or nothing. Anything else is an error, and then missing keys are not reported.
    public private(set) var isMap = true
    /// The mistakes so far.
    public internal(set) var diagnostics = Diagnostics()
    /// The requested options, in order; filled only when describing.
    public internal(set) var described: [OptionDescription] = []

    /// The files whose content was used.
    public internal(set) var files: [FileOfOptions] = []
    /// The paths that options named, in the form for opening the files.
    public internal(set) var paths: [String] = []

    /// The captures that placeholders need from the route's path.
    public internal(set) var neededCaptures: [NeededCapture] = []

    /// The maximum number of options that an error about an unknown option lists.
    private static let mostListed = 6

    /// The objects that were referred to by name, in order.
    public internal(set) var references: [NamedReference] = []

    /// The objects that can be referred to by name.
    let objects: NamedObjects
    var entries: [ConfigNode.Entry] = []
    var known: [String] = []
    /// Names in other programs for keys of this map.
    private var otherWords: [String: String] = [:]
    /// The missing required keys: one of `keys` must be written.
    var missing: [(keys: [String], keyPath: String, message: String)] = []
    /// The first required key.
    var requiredKey: String?
    /// The value that is written in place of a map.
    private var notAMap: ConfigNode?
    /// Mistakes and warnings about the options as a whole. Another mistake may be their cause, so they are reported only without one.
    private var aboutAll = Diagnostics()

    /// Makes a reader for a map, or for nothing. Anything else is an error, and then counts as nothing. Options may refer to `objects`.
    public init(_ node: ConfigNode, keyPath: String, naming objects: NamedObjects = NamedObjects()) {
        self.keyPath = keyPath
        self.objects = objects
        location = node.location
        isDescribing = false
        if let entries = node.entries {
            self.entries = entries
        } else {
            isMap = false
            notAMap = node
        }
    }

    private init(describing keyPath: String) {
        self.keyPath = keyPath
        objects = NamedObjects()
        location = .code
        isDescribing = true
        isWritten = false
    }

    /// A reader without values that records the requested options.
    public static func describing(_ keyPath: String = "") -> OptionsReader { OptionsReader(describing: keyPath) }

    // MARK: One value

    /// Reads a value; if the key is missing, the default stays.
    public mutating func read<T: OptionValue>(_ key: String, into value: inout T, doc: String = "") {
        if let read: T = take(key, value, doc) { value = read }
    }

    /// Reads a value without a default.
    public mutating func read<T: OptionValue>(_ key: String, into value: inout T?, doc: String = "") {
        if let read: T = take(key, value, doc) { value = read }
    }

    /// Reads a value with bounds; a value outside them is an error.
    public mutating func read<T: OptionValue & Comparable>(
        _ key: String, into value: inout T, in range: ClosedRange<T>, doc: String = ""
    ) {
        if let read = take(key, value, in: range, doc) { value = read }
    }

    public mutating func read<T: OptionValue & Comparable>(
        _ key: String, into value: inout T?, in range: ClosedRange<T>, doc: String = ""
    ) {
        if let read = take(key, value, in: range, doc) { value = read }
    }

    /// Reads a text that must not be printed.
    public mutating func readSecret(_ key: String, into value: inout Secret?, doc: String = "") {
        read(key, into: &value, doc: doc)
    }

    /// The value as written, for options that interpret it themselves.
    public mutating func readNode(_ key: String, type: String, doc: String = "") -> ConfigNode? {
        takeValue(key, type, .any, "", nil, false, doc)
    }

    /// Records the content of a file that was used, empty if it is not readable: when it changes, a reload
    /// builds the ware again.
    public mutating func noteFile(_ path: String, content: [UInt8]) {
        files.append(FileOfOptions(path: path, content: content))
    }

    // MARK: Mistakes

    /// Whether the key was written, with a valid value or not.
    public func isGiven(_ key: String) -> Bool { entry(key) != nil }

    /// Whether the key was written without a value, or with an empty list or map.
    public func isEmpty(_ key: String) -> Bool {
        guard let value = entry(key)?.value else { return false }
        return value.text == nil ? value.members.isEmpty || value.entries?.isEmpty == true : value.isEmpty
    }

    /// Records a mistake that the types cannot detect, at the value of the key. Without a key it is about the options as a whole,
    /// and is reported only if they contain no other mistake.
    public mutating func fail(at key: String? = nil, _ message: String) {
        guard !isDescribing else { return }
        guard let key else { return aboutAll.error(at: location, keyPath, message) }
        diagnostics.error(at: entry(key)?.value.location ?? location, path(key), message)
    }

    /// Records a mistake in a file that the key's value names, at its place there.
    public mutating func fail(at key: String, in place: SourceLocation, _ message: String) {
        guard !isDescribing else { return }
        diagnostics.error(at: place, path(key), message)
    }

    /// Reports a known key that cannot be used here, at its place.
    public mutating func refuse(_ key: String, because message: String) {
        known.append(key)
        if let entry = entry(key) { diagnostics.error(at: entry.location, path(key), message) }
    }

    /// Refuses a key that is not among the options. Call this after reading them.
    public mutating func refuseUnknown(_ key: String, because message: String) {
        if isGiven(key), !known.contains(key) { refuse(key, because: message) }
    }

    /// Whether the value of the key is a list.
    public func isList(_ key: String) -> Bool {
        if case .list = entry(key)?.value.content { true } else { false }
    }

    /// Sets names in other programs for keys of this map: an error about such a name suggests the key.
    public mutating func recognize(_ words: [String: String]) { otherWords.merge(words) { first, _ in first } }

    /// Marks all keys as known, because the map as a whole is a mistake.
    mutating func skip() { known += entries.map(\.key) }

    /// Whether there were errors so far.
    public var hasErrors: Bool { !isMap || diagnostics.hasErrors || aboutAll.hasErrors || !missing.isEmpty }

    /// Records a warning, at the same places as `fail`.
    public mutating func warn(at key: String? = nil, _ message: String) {
        guard !isDescribing else { return }
        guard let key else { return aboutAll.warning(at: location, keyPath, message) }
        diagnostics.warning(at: entry(key)?.value.location ?? location, path(key), message)
    }

    /// Records a warning at a place within the value of a key, such as a member of a list.
    public mutating func warn(at key: String, in place: SourceLocation, _ message: String) {
        guard !isDescribing else { return }
        diagnostics.warning(at: place, path(key), message)
    }

    /// The place of the key's value, or of the options as a whole.
    public func location(of key: String) -> SourceLocation { entry(key)?.value.location ?? location }

    /// Reports the keys that were not requested, and returns all mistakes. Nested maps report their own.
    public mutating func finish() -> [ConfigError] {
        guard !isDescribing else { return diagnostics.all }
        if let node = notAMap {
            let example = (requiredKey ?? known.first).map { ", such as \($0): …" } ?? ""
            diagnostics.error(
                at: node.location, keyPath, "\(node.shown) is not a map of options; write key: value\(example)")
        }
        let unknown = entries.filter { !known.contains($0.key) }
        var meant: Set<String> = []
        for entry in unknown {
            let other = otherWords[entry.key.lowercased()]
            var near = other ?? nearest(to: entry.key, among: known)
            var hint = other.map { "; here it is \"\($0)\"" } ?? didYouMean(entry.key, among: known)
            // If one option is unknown and one is missing, the unknown one is probably the missing one.
            if near == nil, unknown.count == 1, missing.count == 1, missing[0].keys.count == 1 {
                near = missing[0].keys[0]
                hint = "; \(missing[0].keys[0]) is missing"
            } else if near == nil, (1...OptionsReader.mostListed).contains(known.count) {
                hint = "; write \(known.joinedByOr)"
            }
            if let near { meant.insert(near) }
            let key = entry.key.unicodeScalars.count > 80 ? String(entry.key.prefix(80)) + "…" : entry.key
            diagnostics.error(at: entry.location, path(key), "unknown option\(hint)")
        }
        // A required key that was written under a wrong name is not missing.
        for lack in missing where meant.isDisjoint(with: lack.keys) {
            diagnostics.error(at: location, lack.keyPath, lack.message)
        }
        if !diagnostics.hasErrors { diagnostics.append(aboutAll.all) }
        (missing, notAMap, aboutAll) = ([], nil, Diagnostics())
        return diagnostics.all
    }

    // MARK: For the other files of this type

    func entry(_ key: String) -> ConfigNode.Entry? { entries.first { $0.key == key } }

    func path(_ key: String) -> String { keyPath.isEmpty ? key : "\(keyPath).\(key)" }

    /// Records that the key is known, describes it, and returns its value.
    mutating func takeValue(
        _ key: String, _ type: String, _ shape: OptionShape, _ text: String, _ allowed: String?, _ isSecret: Bool,
        _ doc: String
    ) -> ConfigNode? {
        known.append(key)
        if isDescribing {
            described.append(
                OptionDescription(
                    key: key, type: type, shape: shape, defaultText: isSecret ? "" : text, allowed: allowed,
                    isSecret: isSecret, doc: doc))
        }
        return entry(key)?.value
    }

    private mutating func take<T: OptionValue>(_ key: String, _ value: T?, _ doc: String) -> T? {
        let shape = OptionShape.value(T.optionForm)
        let node = takeValue(key, T.optionType, shape, value?.optionText ?? "", nil, T.isSecret, doc)
        return node.flatMap { parse($0, path(key)) }
    }

    private mutating func take<T: OptionValue & Comparable>(
        _ key: String, _ value: T?, in range: ClosedRange<T>, _ doc: String
    ) -> T? {
        let bounds = (range.lowerBound.optionText, range.upperBound.optionText)
        let shape = OptionShape.value(T.optionForm.within(bounds.0, bounds.1))
        let shown = "\(bounds.0) to \(bounds.1)"
        guard let node = takeValue(key, T.optionType, shape, value?.optionText ?? "", shown, T.isSecret, doc),
            let value: T = parse(node, path(key))
        else { return nil }
        if range.contains(value) { return value }
        let side = value < range.lowerBound ? "too small" : "too large"
        diagnostics.error(at: node.location, path(key), "\(node.shown) is \(side); write \(shown)")
        return nil
    }

    mutating func parse<T: OptionValue>(_ node: ConfigNode, _ keyPath: String) -> T? {
        guard let text = node.text else {
            // In YAML, {client.ip} without quotes is a map.
            var hint = ""
            if T.self == Template.self || T.self == ContentTemplate.self, let entry = node.entries?.first,
                node.entries?.count == 1, entry.value.isEmpty
            {
                hint = "; quote it: \"{\(entry.key)}\""
            }
            diagnostics.error(at: node.location, keyPath, "\(node.shown) is not \(withArticle(T.optionType))\(hint)")
            return nil
        }
        do {
            let value = try T(optionText: text)
            neededCaptures += value.neededCaptures.map {
                NeededCapture(name: $0, keyPath: keyPath, location: node.location)
            }
            if T.self == String.self || T.self == FilePath.self { warnOfPlaceholder(in: text, at: node, keyPath) }
            if T.self == Template.self || T.self == ContentTemplate.self { warnOfVariable(in: text, at: node, keyPath) }
            return value
        } catch {
            let isSecret = node.isSecret || T.isSecret
            let shown = isSecret ? "the secret value" : node.shown
            let isHidden = isSecret && !T.explainsMistakes
            let problem = (isHidden ? nil : error.problem) ?? "\(shown) is not \(withArticle(T.optionType))"
            diagnostics.error(at: node.location, keyPath, isHidden ? problem : "\(problem); \(error.hint)")
            return nil
        }
    }

    /// Variables of nginx, and the equivalent placeholders.
    private static let variables = [
        "remote_addr": "client.ip", "realip_remote_addr": "peer.ip", "host": "request.host",
        "http_host": "request.host",
        "uri": "request.path", "request_uri": "request.url", "request_method": "request.method",
        "request_id": "exchange.id", "remote_user": "principal", "ssl_client_s_dn": "tls.subject",
    ]

    /// Warns of a variable of nginx in a text with placeholders, because it is plain text here.
    private mutating func warnOfVariable(in text: String, at node: ConfigNode, _ keyPath: String) {
        guard !node.isSecret else { return }
        for part in text.split(separator: "$", omittingEmptySubsequences: false).dropFirst() {
            let name = String(part.prefix { $0 == "_" || $0.isASCII && $0.isLetter })
            guard let placeholder = OptionsReader.variables[name] else { continue }
            diagnostics.warning(
                at: node.location, keyPath, "$\(name) is sent as it stands; the placeholder is {\(placeholder)}")
        }
    }

    /// Warns of a placeholder in a text whose placeholders are not filled in.
    private mutating func warnOfPlaceholder(in text: String, at node: ConfigNode, _ keyPath: String) {
        guard text.utf8.contains(UInt8(ascii: "{")), let content = try? ContentTemplate(optionText: text),
            content.fixedText == nil
        else { return }
        diagnostics.warning(
            at: node.location, keyPath, "placeholders are not filled in here; the text is used as it is")
    }

    private func withArticle(_ type: String) -> String {
        type.contains(" | ") ? "one of \(type)" : "aeiou".contains(type.prefix(1)) ? "an \(type)" : "a \(type)"
    }
}
