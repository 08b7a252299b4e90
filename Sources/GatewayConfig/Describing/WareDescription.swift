import Capturing
public import HttpWare

/// A ware as shown in help, reference and schema, generated from its declarations.
public struct WareDescription: Sendable {
    /// Where a ware is listed, and what it acts on.
    public enum Side: String, Sendable {
        /// Listed under `middlewares`; acts on requests.
        case middleware
        /// Listed under `postwares`; acts on responses.
        case postware
        /// Listed under `middlewares`; its response half runs on the way back.
        case both
        /// Listed under `middlewares`, where it acts on requests, or under `postwares`, where it acts on responses.
        case either
    }

    /// The name in files.
    public let name: String
    /// The side, determined by the conformances of the type.
    public let side: Side
    /// Whether the ware can have `filter` besides `if`.
    public let takesFilter: Bool
    /// The sentence, the source, the example and the details.
    public let about: WareAbout
    /// The options, in the order in which the ware reads them.
    public let options: [OptionDescription]
    /// The ware's place in a chain; `nil` if it can stand anywhere.
    public let place: ChainPlace?
    /// Whether the exchange continues if the ware cannot do its work.
    public let failsOpen: Bool

    /// Describes a ware by running its own `init` with a describing reader.
    public init(_ type: any ConfigurableWare.Type) {
        name = type.name.text
        side =
            switch WareRegistry.side(type) {
            case .middleware: .middleware
            case .postware: .postware
            case .twoSided: .both
            case .either: .either
            }
        about = type.about
        takesFilter = type is any FilteredWare.Type
        place = type.chainPlace
        var reader = OptionsReader.describing()
        failsOpen = type.init(options: &reader).failsOpen
        options = reader.described
    }

    /// The descriptions of several wares, by name.
    public static func all(_ types: [any ConfigurableWare.Type]) -> [WareDescription] {
        types.map(WareDescription.init).sorted { $0.name < $1.name }
    }

    /// The hint for an unknown name, such as `; did you mean "compress"?`. It names the wares that other programs call by this
    /// name, or else the ware with the nearest name; empty if there is none. Case, `-` and `_` are ignored.
    public static func didYouMean(
        _ name: String, among types: [any ConfigurableWare.Type], or others: String...
    ) -> String {
        let wanted = plain(name)
        let meant = types.filter { $0.about.otherNames.contains { plain($0) == wanted } }.map { $0.name.text }.sorted()
        return meant.isEmpty
            ? HttpWare.didYouMean(name, among: types.map { $0.name.text }.sorted() + others)
            : HttpWare.didYouMean(meant)
    }

    private static func plain(_ name: String) -> String { name.lowercased().filter { $0 != "-" && $0 != "_" } }

    /// The list of a chain that contains it.
    public var list: String { side == .postware ? "postwares" : "middlewares" }

    /// The ware's example as the list of a chain; without an example, the ware's name.
    public var example: String {
        let entries = about.example.isEmpty ? "- \(name)" : about.example
        let lines = entries.split(separator: "\n", omittingEmptySubsequences: false)
        return "\(list):\n" + lines.map { "  \($0)" }.joined(separator: "\n")
    }

    /// The options with values, without options that only group others. In a list of maps, options that the ware itself
    /// also has are left out.
    public var shownOptions: [OptionDescription] {
        let keys = Set(options.map(\.key))
        return options.filter { option in
            guard let bracket = option.key.firstRange(of: "[].") else { return !option.shape.isOptions }
            return !keys.contains(String(option.key[bracket.upperBound...]))
        }
    }

    /// The description as JSON.
    public var json: ConfigNode {
        [
            "name": .text(name), "side": .text(side.rawValue), "sentence": .text(about.sentence),
            "source": .text(about.source), "details": .text(about.details), "example": .text(example),
            "options": ConfigNode(.list(options.map(\.json))),
        ]
    }
}

extension OptionDescription {
    /// `required`, the default, or `none`.
    public var shownDefault: String { isRequired ? "required" : defaultText.isEmpty ? "none" : defaultText }

    /// The meaning, with bounds.
    public var meaning: String {
        let bounds = allowed?.replacing(" to ", with: " … ")
        return [doc.isEmpty ? nil : doc, bounds].compactMap(\.self).joined(separator: "; ")
    }

    var json: ConfigNode {
        var entries: [(String, ConfigNode)] = [("key", .text(key)), ("type", .text(type))]
        if !defaultText.isEmpty { entries.append(("default", .text(defaultText))) }
        if let allowed { entries.append(("allowed", .text(allowed))) }
        entries.append(("required", ConfigNode(booleanLiteral: isRequired)))
        if isSecret { entries.append(("secret", true)) }
        entries.append(("doc", .text(doc)))
        return .map(entries)
    }
}

extension ConfigNode {
    /// A text in JSON.
    public static func text(_ text: String) -> ConfigNode { ConfigNode(stringLiteral: text) }

    /// A map in JSON, in the order of its keys.
    public static func map(_ entries: [(String, ConfigNode)]) -> ConfigNode {
        ConfigNode(.map(entries.map { Entry(key: $0.0, location: .code, value: $0.1) }))
    }

    /// A list in JSON.
    public static func list(_ members: [ConfigNode]) -> ConfigNode { ConfigNode(.list(members)) }
}
