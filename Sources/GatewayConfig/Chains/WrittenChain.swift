import Capturing
import HttpWare

/// A chain as written in a file: its entries, with their wares, and the other chains that it uses.
struct WrittenChain {
    enum List: String, CaseIterable {
        case middlewares, postwares
    }

    enum Item {
        case entry(WrittenEntry)
        case use(Located<String>)
    }

    let name: String
    let location: SourceLocation
    var items: [List: [Item]] = [:]
}

/// An entry with the options from which it was built, so that a route can build it again with other options.
struct WrittenEntry {
    let entry: ChainEntry
    let name: String
    /// The value of `as`.
    let label: String?
    let side: WareRegistry.Side
    let type: any ConfigurableWare.Type
    let filter: CaptureFilter?
    let options: ConfigNode
    let place: WarePlace
    /// The captures of the route's path that its placeholders need.
    let captures: [NeededCapture]
}

/// Reads chains and builds their wares, each entry once.
struct ChainBuilder {
    let registry: WareRegistry
    /// The objects that options can refer to by name.
    var objects = NamedObjects()
    /// The references by name that options made.
    private(set) var references: Set<NamedReference> = []
    var diagnostics = Diagnostics()
    /// Every ware that was built, by its place.
    private(set) var built: [WarePlace: BuiltWare] = [:]
    /// The wares of the running configuration. If a new one would be built in the same way, the running one is kept.
    private let former: [WarePlace: BuiltWare]
    /// The files that options name.
    private(set) var files: [String] = []
    private var ordinals: [WarePlace: Int] = [:]
    private var secrets: [String: Set<[String]>] = [:]
    /// The labels of the responses of wares.
    private(set) var labels: Set<String> = []
    /// The labels of wares that have one, by the name of the ware.
    private(set) var relabelled: [String: String] = [:]
    /// The names in `if: { responder: … }`, with their key paths.
    private(set) var responders: [(keyPath: String, node: ConfigNode)] = []
    /// Whether errors at that place are about a found service, whose text must not look at this machine.
    private let isGuest: (String) -> Bool
    /// The names of the chains that were read.
    private(set) var chainNames: [String] = []

    init(
        registry: WareRegistry, former: [WarePlace: BuiltWare] = [:],
        isGuest: @escaping (String) -> Bool = { _ in false }
    ) {
        self.registry = registry
        self.former = former
        self.isGuest = isGuest
    }

    private static let longestList = 1000

    /// Reads an entry under `chains`.
    mutating func read(name: String, node: ConfigNode) -> WrittenChain {
        var chain = WrittenChain(name: name, location: node.location)
        chainNames.append(name)
        var options = OptionsReader(node, keyPath: "chains.\(name)")
        for list in WrittenChain.List.allCases {
            guard let node = options.readNode(list.rawValue, type: "list of wares") else { continue }
            let keyPath = "\(options.keyPath).\(list.rawValue)"
            if node.members.count > Self.longestList {
                diagnostics.error(at: node.location, keyPath, "more than \(Self.longestList) entries")
                continue
            }
            if case .map = node.content {
                diagnostics.error(at: node.location, keyPath, "a map is not a list; write - before each ware")
                continue
            }
            chain.items[list] = node.members.compactMap { item($0, of: name, list, keyPath) }
        }
        diagnostics.append(options.finish())
        return chain
    }

    /// Builds the entry again for one route, with some of its options replaced.
    mutating func rebuild(
        _ written: WrittenEntry, for route: String, replacing replacements: [ConfigNode.Entry]
    ) -> WrittenEntry {
        var place = written.place
        place.route = route
        let replaced = Set(replacements.map(\.key))
        let kept = (written.options.entries ?? []).filter { !replaced.contains($0.key) }
        let options = ConfigNode(.map(kept + replacements), at: written.options.location)
        return build(
            written.type, options, at: place, label: written.label, side: written.side, order: written.entry.order,
            conditions: (written.entry.condition, written.entry.gate, written.filter),
            location: written.entry.location)
    }

    // MARK: One entry

    private mutating func item(
        _ node: ConfigNode, of chain: String, _ list: WrittenChain.List, _ keyPath: String
    ) -> WrittenChain.Item? {
        if let name = node.text {
            let options = ConfigNode(.map([]), at: node.location)
            return entry(name, of: chain, node.location, options, common: [], node.location, list)
        }
        guard let entries = node.entries else {
            diagnostics.error(at: node.location, keyPath, "a list is not a ware; write its name, or name: {options}")
            return nil
        }
        let commonKeys = ["if", "filter", "as", "order"]
        let named = entries.filter { !commonKeys.contains($0.key) }
        let common = entries.filter { commonKeys.contains($0.key) }
        guard let ware = named.first else {
            diagnostics.error(
                at: node.location, keyPath, "an entry without a ware; write its name, such as - bodyLimit")
            return nil
        }
        guard named.count == 1 else {
            let other = registry[ware.key] == nil ? ware : named[1]
            let isWare = registry[other.key] != nil || other.key == "use"
            diagnostics.error(
                at: other.location, keyPath,
                isWare
                    ? "\(ware.key) and \(other.key) in one entry; write - before each"
                    : "\(other.key.shortened.quotedForErrors) stands beside \(ware.key.shortened.quotedForErrors); indent options"
                        + " deeper than their ware\(didYouMean(other.key, among: commonKeys))")
            return nil
        }
        if ware.key == "use" { return use(ware, common, keyPath) }
        return entry(ware.key, of: chain, ware.location, ware.value, common: common, node.location, list)
    }

    private mutating func use(
        _ entry: ConfigNode.Entry, _ common: [ConfigNode.Entry], _ keyPath: String
    ) -> WrittenChain.Item? {
        for key in common {
            diagnostics.error(
                at: key.location, "\(keyPath).use",
                "\(key.key) cannot be combined with use; put it on the entries of that chain")
        }
        guard let name = entry.value.text, !name.isEmpty else {
            diagnostics.error(
                at: entry.value.location, "\(keyPath).use", "\(entry.value.shown) is not the name of a chain")
            return nil
        }
        return .use(Located(name, at: entry.value.location))
    }

    private mutating func entry(
        _ name: String, of chain: String, _ nameLocation: SourceLocation, _ options: ConfigNode,
        common: [ConfigNode.Entry], _ location: SourceLocation, _ list: WrittenChain.List
    ) -> WrittenChain.Item? {
        noteNames(name, common)
        guard let type = registry[name] else {
            diagnostics.error(at: nameLocation, name.shortened, registry.problem(with: name))
            return nil
        }
        var side = WareRegistry.side(type)
        if side == .either { side = list == .postwares ? .postware : .middleware }
        if list == .postwares, side != .postware {
            let kind = side == .twoSided ? "acts in both directions" : "is a middleware"
            diagnostics.error(at: nameLocation, name, "\(kind); list it under middlewares")
            return nil
        }
        if list == .middlewares, side == .postware {
            diagnostics.error(at: nameLocation, name, "is a postware; list it under postwares")
            return nil
        }
        var reader = OptionsReader(ConfigNode(.map(common), at: location), keyPath: name)
        var label: String?
        var order: WareOrder?
        var condition: Condition?
        var filter: CaptureFilter?
        reader.read("as", into: &label)
        reader.read("order", into: &order)
        reader.read("if") { options in
            let read = ConditionOptions(options: &options, isPostware: side == .postware)
            if common.contains(where: { $0.key == "if" }) { condition = Condition(read) }
        }
        var gate: FilterGate?
        if let filtered = type as? any FilteredWare.Type {
            reader.read("filter", into: &filter)
            if let filter {
                do throws(FilterFault) {
                    if filtered.filtersAtEnd {
                        try filter.checkWithoutRecord()
                    } else {
                        gate = try FilterGate(filter, isPostware: side == .postware)
                    }
                } catch {
                    reader.fail(at: "filter", "\(filter.text.quotedForErrors): \(error)")
                }
            }
        } else {
            reader.refuse("filter", because: "has no effect on \(name); use if")
        }
        if let label, label.isEmpty { reader.fail(at: "as", "is empty; write a label") }
        diagnostics.append(reader.finish())
        let place = place(of: label ?? name, isLabel: label != nil, in: chain)
        return .entry(
            build(
                type, options, at: place, label: label, side: side, order: order,
                conditions: (condition, gate, filter), location: location))
    }

    /// Notes the label of the entry's responses, and the labels in its condition.
    private mutating func noteNames(_ name: String, _ common: [ConfigNode.Entry]) {
        let label = common.first { $0.key == "as" }?.value.text
        labels.insert(label ?? name)
        if let label { relabelled[name] = label }
        if let node = common.first(where: { $0.key == "if" })?.value { noteResponders("\(name).if", node, level: 0) }
    }

    /// Notes the responders that a condition names. This includes conditions inside `not` and `any`, down to the deepest allowed
    /// level.
    private mutating func noteResponders(_ keyPath: String, _ node: ConfigNode, level: Int) {
        for node in node["responder"]?.members ?? [] { responders.append(("\(keyPath).responder", node)) }
        guard level < RequestMatch.mostLevels else { return }
        for key in ["not", "any"] {
            for member in node[key]?.members ?? [] { noteResponders("\(keyPath).\(key)", member, level: level + 1) }
        }
    }

    /// Notes references by name from definitions other than wares.
    mutating func note(_ references: [NamedReference]) { self.references.formUnion(references) }

    /// The key paths of options whose values must never be printed.
    private mutating func secretOptions(of type: any ConfigurableWare.Type) -> Set<[String]> {
        let name = type.name.text
        if let known = secrets[name] { return known }
        var reader = OptionsReader.describing()
        _ = type.init(options: &reader)
        let paths = reader.described.filter(\.isSecret).map { option in
            NodeComparison.bare(option.key.split(separator: ".").map(String.init))
        }
        secrets[name] = Set(paths)
        return Set(paths)
    }

    /// The next place with that key in the chain.
    private mutating func place(of key: String, isLabel: Bool, in chain: String) -> WarePlace {
        let first = WarePlace(chain: chain, key: key, isLabel: isLabel, ordinal: 0)
        let ordinal = ordinals[first, default: 0]
        ordinals[first] = ordinal + 1
        return WarePlace(chain: chain, key: key, isLabel: isLabel, ordinal: ordinal)
    }

    private mutating func build(
        _ type: any ConfigurableWare.Type, _ options: ConfigNode, at place: WarePlace, label: String?,
        side: WareRegistry.Side, order: WareOrder?,
        conditions: (condition: Condition?, gate: (any EntryGate)?, filter: CaptureFilter?),
        location: SourceLocation
    ) -> WrittenEntry {
        let name = type.name.text
        let isGuest = isGuest(location.file)
        // The text of a found service names no object of the configuration, either.
        var reader = OptionsReader(options, keyPath: name, naming: isGuest ? NamedObjects() : objects)
        let made = isGuest ? FileGate.whileClosed { type.init(options: &reader) } : type.init(options: &reader)
        for key in ["if", "as", "order", "filter"] {
            reader.refuseUnknown(
                key, because: "is not an option of \(name); write it beside \(name):, at the same depth")
        }
        var ware = BuiltWare(
            ware: made, options: options, files: reader.files, paths: reader.paths, references: reader.references)
        diagnostics.append(reader.finish())
        references.formUnion(reader.references)
        files += reader.files.map(\.path)
        if let former = former[place], former.isSame(as: ware) { ware.ware = former.ware }
        built[place] = ware
        var acting: any Ware = ware.ware
        if let filter = conditions.filter, let filtered = acting as? any FilteredWare {
            acting = filtered.filtered(by: filter)
        }
        let entry = ChainEntry(
            acting, label: label ?? name, condition: conditions.condition, gate: conditions.gate, order: order,
            location: location,
            options: options.marking(secrets: secretOptions(of: type)))
        return WrittenEntry(
            entry: entry, name: name, label: label, side: side, type: type, filter: conditions.filter,
            options: options, place: place, captures: reader.neededCaptures)
    }
}
