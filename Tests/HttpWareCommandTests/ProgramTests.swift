import HttpWare
import Testing

@testable import HttpWareCommand

@Suite struct ProgramTests {
    private struct Named<Name: NamedForTest>: Middleware, ConfigurableWare {
        static var name: WareName { WareName(Name.text) }
        static var about: WareAbout { WareAbout("Does nothing.") }

        init(options: inout OptionsReader) {}

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    }

    private protocol NamedForTest: Sendable { static var text: String { get } }
    private enum Own: NamedForTest { static let text = "ownWare" }
    private enum BuiltIn: NamedForTest { static let text = "bodyLimit" }
    private enum Key: NamedForTest { static let text = "if" }
    private enum Capital: NamedForTest { static let text = "OwnWare" }
    private enum Empty: NamedForTest { static let text = "" }

    @Test func `a program with a ware of its own can start`() {
        #expect(Program(name: "my-gateway", wares: [Named<Own>.self]).problem == nil)
    }

    @Test(arguments: ["", "my gateway", "-gateway", "9gateway", "gate\nway", "gäteway"])
    func `a name that help and logs cannot show is refused`(name: String) {
        #expect(Program(name: name).problem?.contains("cannot name a program") == true)
    }

    @Test func `a ware whose name means something else is refused, with that meaning`() {
        func problem(_ wares: any ConfigurableWare.Type...) -> String { Program(name: "a", wares: wares).problem ?? "" }
        #expect(
            problem(Named<BuiltIn>.self).hasSuffix(
                #""bodyLimit" is also the name of the built-in ware; choose another name"#))
        #expect(problem(Named<Key>.self).hasSuffix(#""if" is a key of every entry of a chain; choose another name"#))
        #expect(problem(Named<Own>.self, Named<Own>.self).contains(#""ownWare" is also the name of Named<Own>"#))
        #expect(problem(Named<Capital>.self).contains(#""OwnWare" cannot name a ware"#))
        #expect(problem(Named<Empty>.self).contains(#""" cannot name a ware"#))
    }

    @Test func `versions name httpware beside another program`() {
        let version = ProgramVersion.text
        #expect(Program(name: "httpware").nameAndVersion == "httpware \(version)")
        #expect(Program(name: "my-gateway").nameAndVersion == "my-gateway (httpware \(version))")
        #expect(Program(name: "my-gateway", version: "1.4").nameAndVersion == "my-gateway 1.4 (httpware \(version))")
        #expect(Program(name: "httpware").versions.map(\.name) == ["httpware"])
        #expect(Program(name: "my-gateway", version: "1.4").versions.map(\.version) == ["1.4", version])
    }
}
