import Acme
import HttpCaching
public import HttpWare

/// One value of a configuration after includes and interpolation, masked if it is secret.
public struct WrittenValue: Sendable, Hashable {
    /// The path, such as `listeners.web.limits.head` or `chains.base.middlewares[1].mock.body`, with marks for user information.
    public let path: String
    /// The text, with marks for user information in URLs; `nil` if it must not be printed.
    public let text: String?
    /// Whether the text has a mark in place of user information.
    public let hidesUserInformation: Bool
    /// The place in the file.
    public let location: SourceLocation

    /// Masks a value.
    init(path: String, text: String, isSecret: Bool, location: SourceLocation) {
        let shown = Redaction.text(text)
        self.path = Redaction.text(path)
        self.text = isSecret ? nil : shown
        hidesUserInformation = !isSecret && shown != text
        self.location = location
    }

    /// The same value, as a secret.
    fileprivate var hidden: WrittenValue { WrittenValue(path: path, text: "", isSecret: true, location: location) }
}

extension GatewayConfiguration {
    /// Every written value, in file order. Values that are not written have their default.
    public var values: [WrittenValue] {
        var walk = Walk(secrets: Set(ConfigurationDifference.secrets(self).compactMap(\.last)).union(["token"]))
        var counts: [String: Int] = [:]
        let secrets = walk.secrets
        for section in written {
            switch section.key {
            case "credentials": walk.secrets = secrets.union(CredentialRules.secretKeys)
            case "stores": walk.secrets = secrets.union(stores.flatMap(\.store.definition.secretKeys))
            default: walk.secrets = secrets
            }
            // A list that several files contribute to is one list.
            if case .list(let members) = section.value.content {
                for member in members {
                    let index = counts[section.key, default: 0]
                    counts[section.key] = index + 1
                    walk.add(member, "\(section.key)[\(index)]", key: section.key)
                }
            } else {
                walk.add(section.value, section.key, key: section.key)
            }
        }
        // An alias has the place of its anchor, so that another option can have the text of a secret one.
        let places = Set(walk.values.lazy.filter { $0.text == nil && $0.location != .code }.map(\.location))
        return places.isEmpty ? walk.values : walk.values.map { places.contains($0.location) ? $0.hidden : $0 }
    }

    /// The places of secret values in the files.
    var secretPlaces: Set<SourceLocation> {
        Set(values.lazy.filter { $0.text == nil && $0.location != .code }.map(\.location))
    }

    private struct Walk {
        /// The keys of secret values. A key that is secret anywhere is masked everywhere.
        var secrets: Set<String>
        var values: [WrittenValue] = []

        /// Adds a value. The depth of the recursion is bounded by the reader's limit.
        /// - Parameter isFree: Whether the user chose the key, so that a value is secret if the key is named like a credential.
        mutating func add(_ node: ConfigNode, _ path: String, key: String, isFree: Bool = false) {
            switch node.content {
            case .scalar(let text, _):
                let isSecret =
                    node.isSecret || secrets.contains(key) || path.contains("].sticky.key")
                    || isFree && ConfigNode.isSecret(text, named: key)
                    || path.hasPrefix("services.") && path.contains(".sticky.key")
                    || AcmeSettings.secretKeys.contains { path.contains(".\($0.joined(separator: "."))") }
                values.append(WrittenValue(path: path, text: text, isSecret: isSecret, location: node.location))
            case .list(let members):
                for (index, member) in members.enumerated() {
                    add(member, "\(path)[\(index)]", key: key, isFree: isFree)
                }
            case .map(let entries):
                // Everything below a secret key is secret.
                let isSecret = secrets.contains(key) || isFree && Redaction.isSecret(name: key)
                let isFree = isFree || ConfigNode.freelyNamed.contains(key)
                for entry in entries {
                    add(entry.value, "\(path).\(entry.key)", key: isSecret ? key : entry.key, isFree: isFree)
                }
            }
        }
    }
}
