import HttpWareCommand
public import HttpWare

/// A gateway with wares of its own: the program `httpware`, under a name of its own and with more wares.
///
/// ```swift
/// import HttpWareGateway
///
/// @main struct MyGateway: GatewayProgram {
///     static let name = "my-gateway"
///     static let wares: [any ConfigurableWare.Type] = [MethodRule.self]
/// }
/// ```
///
/// It has every command of `httpware`. In configuration files, in `check`, `explain`, `wares`, `schema` and the other commands, its
/// wares stand beside the built-in ones.
public protocol GatewayProgram {
    /// The name of the program in its help, its own texts, and the lines that it sends to a system log. It begins with a letter, and
    /// has letters, digits, `-`, `_` and `.`.
    ///
    /// `Via`, the names of metrics and the default places of files keep the name httpware.
    static var name: String { get }

    /// The version of the program, beside that of httpware; `nil`, the default, if it has none of its own.
    static var version: String? { get }

    /// The wares that configuration files can name, in addition to the built-in ones. None by default.
    ///
    /// If two wares have the same name, or a name is not in lowerCamelCase, the program ends with an error when it starts.
    static var wares: [any ConfigurableWare.Type] { get }
}

extension GatewayProgram {
    public static var version: String? { nil }
    public static var wares: [any ConfigurableWare.Type] { [] }

    /// Runs the command that the command line names; `@main` calls it.
    public static func main() {
        WareLog.shared.useStandardError()
        Program(name: name, version: version, wares: wares).main()
    }
}
