import Credentials
public import HttpCaching
public import HttpWare

/// The JSON Schema (2020-12) of configuration files, generated from the options of wares and other definitions. Files
/// that it refuses are also refused by `check`, with one exception: a label in a route's `with` that is the name of
/// another ware. Rules about the whole file, such as names that must resolve, are only in `check`.
public struct ConfigurationSchema: Sendable {
    private let wares: [WareDescription]
    private let stores: [any StoreKind.Type]

    /// Makes the schema of files that can name these wares, and these kinds of stores besides `memory`.
    public init(_ types: [any ConfigurableWare.Type], stores: [any StoreKind.Type] = []) {
        wares = WareDescription.all(types)
        self.stores = stores
    }

    /// The title, by which a file with the schema is known.
    public static let title = "httpware configuration"

    /// The schema as JSON.
    public var json: ConfigNode {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": .text(Self.title),
            "type": "object",
            "properties": .map(properties),
            "patternProperties": ["^x-": ["description": "values for anchors"]],
            "additionalProperties": false,
            "$defs": .map(definitions),
        ]
    }

    /// The schema of another file, which has these options.
    public static func schema(title: String, _ read: (inout OptionsReader) -> Void) -> ConfigNode {
        let head: ConfigNode = ["$schema": "https://json-schema.org/draft/2020-12/schema", "title": .text(title)]
        return ConfigNode(.map((head.entries ?? []) + (ConfigurationSchema([]).object(read).entries ?? [])))
    }

    // MARK: Nouns

    private var properties: [(String, ConfigNode)] {
        [
            ("version", ["description": "comes first", "enum": [1, "1"]]),
            (
                "include",
                OptionShape.list(of: ["type": "string", "minLength": 1]).describing(
                    "more files to read, by path or pattern")
            ),
            (
                "listeners",
                named(object { _ = ListenerDefinition(name: "", options: &$0) }).describing(
                    "the addresses at which clients are served, by name")
            ),
            (
                "credentials",
                named(object { _ = CredentialDefinition(name: "", options: &$0) }).describing(
                    "where tokens come from, by name")
            ),
            (
                "stores",
                named(object { _ = StoreDefinition(name: "", options: &$0, kinds: stores) }).describing(
                    "where cached responses, limits and tokens are kept, by name")
            ),
            (
                "services",
                named(
                    object { _ = ConfiguredService(name: "", options: &$0) },
                    apart: [
                        (
                            ConfiguredService.passthroughName,
                            object { _ = ConfiguredService(passthrough: &$0) }
                                .describing("how the built-in service connects to the origins that clients choose")
                        )
                    ]
                ).describing("the servers behind the gateway, by name")
            ),
            ("chains", named(chain).describing("the wares for requests and responses, by name")),
            (
                "routes",
                OptionShape.list(of: route).describing(
                    "which requests go to which service; the first that matches is used")
            ),
            (
                "discover",
                object { _ = DiscoverDefinition(options: &$0) }.describing(
                    "containers and files whose services are used without a reload")
            ),
            (
                "admin",
                object { _ = AdminDefinition(options: &$0) }.describing(
                    "the listener of the page, of metrics and of commands for the running gateway")
            ),
            ("resolver", object { _ = ResolverDefinition(options: &$0) }.describing("how names are looked up")),
            ("log", object { _ = LogDefinition(options: &$0) }.describing("the gateway's own log")),
        ]
    }

    /// A map of names to values of this form. The names in `own` have values of their own form.
    private func named(_ value: ConfigNode, apart own: [(String, ConfigNode)] = []) -> ConfigNode {
        let map: ConfigNode = [
            "type": ["object", "null"], "propertyNames": ["pattern": "^[A-Za-z0-9_.-]{1,64}$"],
            "additionalProperties": value,
        ]
        return own.isEmpty ? map : map.adding("properties", .map(own))
    }

    private var route: ConfigNode {
        let with: ConfigNode = [
            "description": "by label, else by name: options that replace those of the entry, or false to drop it",
            "type": ["object", "null"],
            "properties": .map(
                wares.map { ware in
                    let value: ConfigNode = ["anyOf": [["const": false], object(ware.options, isWhole: false)]]
                    return (ware.name, value.describing(ware.about.sentence))
                }),
            "additionalProperties": ["anyOf": [["const": false], ["type": ["object", "null"]]]],
        ]
        let read = described { _ = RouteDefinition(index: 0, options: &$0) }
        return object(read, replacing: ["with": with])
    }

    // MARK: Chains

    private var chain: ConfigNode {
        [
            "type": ["object", "null"],
            "properties": [
                "middlewares": OptionShape.list(of: ["$ref": "#/$defs/middleware"])
                    .describing("the wares that run on the request, in this order"),
                "postwares": OptionShape.list(of: ["$ref": "#/$defs/postware"])
                    .describing("the wares that run on the response, in this order"),
            ],
            "additionalProperties": false,
        ]
    }

    private var definitions: [(String, ConfigNode)] {
        [
            ("interpolated", ["description": "a text with a variable", "type": "string", "pattern": #"\$[{$]"#]),
            (
                "match",
                object { options in
                    var match = RequestMatch()
                    match.read(&options)
                }
            ),
            ("condition", object { _ = ConditionOptions(options: &$0, isPostware: true) }),
            ("middleware", entry(wares.filter { $0.side != .postware }, isPostware: false)),
            ("postware", entry(wares.filter { $0.side == .postware || $0.side == .either }, isPostware: true)),
        ] + wares.map { ($0.name, object($0.options).describing($0.about.sentence)) }
    }

    /// An entry of a list: a ware's name, or a map of one name to options, with `if`, `as` and `order`; or only `use`.
    private func entry(_ wares: [WareDescription], isPostware: Bool) -> ConfigNode {
        let bare = wares.filter { ware in !ware.options.contains { !$0.key.contains(".") && $0.isNeeded } }
        var properties: [(String, ConfigNode)] = [("use", ["type": "string", "minLength": 1])]
        properties += wares.map { ($0.name, ["$ref": .text("#/$defs/\($0.name)")]) }
        let condition = described { _ = ConditionOptions(options: &$0, isPostware: isPostware) }.filter {
            isPostware || !ResponseMatch.keys.contains($0.key)
        }
        properties += [
            ("if", object(condition).describing("when the ware runs")),
            (
                "filter",
                [
                    "description": "exchanges that the ware acts on, in the language of captures", "type": "string",
                    "minLength": 1,
                ]
            ),
            ("as", ["description": "a label", "type": "string", "minLength": 1]),
            ("order", WareOrder.optionForm.schema.describing("moves the ware in the joined chain")),
        ]
        let exactlyOne = (["use"] + wares.map(\.name)).map { ConfigNode.map([("required", [.text($0)])]) }
        let map: ConfigNode = [
            "type": "object", "properties": .map(properties), "additionalProperties": false,
            "oneOf": .list(exactlyOne),
            "if": ["required": ["use"]], "then": ["maxProperties": 1],
            "dependentSchemas": [
                "filter": ["anyOf": .list(wares.filter(\.takesFilter).map { .map([("required", [.text($0.name)])]) })]
            ],
        ]
        return ["anyOf": [["enum": .list(bare.map { .text($0.name) })], map, ["$ref": "#/$defs/interpolated"]]]
    }

    // MARK: Options

    private func described(_ read: (inout OptionsReader) -> Void) -> [OptionDescription] {
        var reader = OptionsReader.describing()
        read(&reader)
        return reader.described
    }

    private func object(_ read: (inout OptionsReader) -> Void) -> ConfigNode { object(described(read)) }

    /// A map of these options and no others. If `isWhole` is false, no option is required.
    private func object(
        _ options: [OptionDescription], isWhole: Bool = true, replacing replacements: [String: ConfigNode] = [:]
    ) -> ConfigNode {
        let own = options.filter { !$0.key.contains(".") }
        let properties = own.map { option in
            let schema = replacements[option.key] ?? option.shape.schema ?? nested(option, options, isWhole: isWhole)
            return (option.key, schema.describing(option.schemaText))
        }
        let required = isWhole ? own.filter(\.isRequired).map { ConfigNode.text($0.key) } : []
        let relations = isWhole ? own.flatMap(\.relations) : []
        var entries: [(String, ConfigNode)] = [
            ("type", isWhole && own.contains(where: \.isNeeded) ? "object" : ["object", "null"]),
            ("properties", .map(properties)), ("additionalProperties", false),
        ]
        if !required.isEmpty { entries.append(("required", .list(required))) }
        let needs = OptionRelation.needs(relations)
        if !needs.isEmpty { entries.append(("dependentRequired", .map(needs))) }
        let others = relations.compactMap(\.schema)
        if !others.isEmpty { entries.append(("allOf", .list(others))) }
        return .map(entries)
    }

    /// The schema of an option that has options of its own, which are described under its name.
    private func nested(_ option: OptionDescription, _ options: [OptionDescription], isWhole: Bool) -> ConfigNode {
        var only: String?
        var isList = false
        if case .optionsList(let text) = option.shape { (isList, only) = (true, text) }
        let prefix = option.key + (isList ? "[]." : ".")
        let members = options.filter { $0.key.hasPrefix(prefix) }.map { member in
            var member = member
            member.key.removeFirst(prefix.count)
            return member
        }
        let map = object(members, isWhole: isWhole || isList)
        if case .optionsOr(let word) = option.shape { return ["anyOf": [["const": .text(word)], map]] }
        guard isList else { return map }
        guard let only, let text = members.first(where: { $0.key == only })?.shape.schema else {
            return OptionShape.list(of: map)
        }
        return OptionShape.list(of: ["anyOf": [text, map]])
    }
}

extension OptionDescription {
    /// Whether the options are incomplete without this one, or one of several.
    fileprivate var isNeeded: Bool { isRequired || relations.contains { if case .any = $0 { true } else { false } } }

    fileprivate var schemaText: String {
        let standard = isRequired || defaultText.isEmpty || shape.isOptions ? nil : "default: \(defaultText)"
        return [meaning, standard].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: "; ")
    }
}

extension ConfigNode {
    /// The schema with a description in front.
    fileprivate func describing(_ text: String) -> ConfigNode {
        guard !text.isEmpty, let entries, self["description"] == nil else { return self }
        return ConfigNode(.map([Entry(key: "description", location: .code, value: .text(text))] + entries))
    }

    fileprivate func adding(_ key: String, _ value: ConfigNode) -> ConfigNode {
        ConfigNode(.map((entries ?? []) + [Entry(key: key, location: .code, value: value)]))
    }
}
