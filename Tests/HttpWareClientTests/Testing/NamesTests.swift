import Foundation
import HttpWareClient
import HttpWareClientConfiguration
import HttpWareFoundation
import HttpWareTesting
import OpenCombine
import Testing

/// An app's file imports these together. Names that two of them declare make it ambiguous, and this file fails to compile.
@Suite struct NamesTests {
    @Test func `names of swift-testing, Combine and Foundation mean what they mean without the client`() {
        let place: SourceLocation = #_sourceLocation
        let none = Empty<Int, Never>()
        let pieces: [Any.Type] = [
            Comment.self, Tag.self, Issue.self, Just<Int>.self, Future<Int, Never>.self, Record<Int, Never>.self,
            URL.self, Data.self, Date.self, UUID.self, Notification.self, Operation.self, Scanner.self, Stream.self,
        ]
        #expect(place.line > 0 && none.completeImmediately && pieces.count == 14)
    }

    /// SwiftUI is on no Linux, so these are looked for in the sources.
    @Test func `no public name is one of SwiftUI`() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/HttpWareClient")
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects as? [URL]
        let code = try (files ?? []).filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }.joined(separator: "\n")
        let declared = code.matches(of: /(?m)^public (?:final )?(?:struct|class|enum|protocol|typealias) (\w+)/)
        let exported = code.matches(of: /(?m)^@_exported public import \w+ \w+\.(\w+)/)
        let names = Set(declared.map { String($0.1) } + exported.map { String($0.1) })
        #expect(names.count > 100 && names.count < 200)
        let taken: Set = [
            "Animation", "App", "Binding", "Bindable", "Button", "Color", "Divider", "Edge", "Empty", "Entry",
            "Environment", "Font", "Form", "Gradient", "Grid", "Group", "Image", "Label", "Layout", "Link", "List",
            "Menu", "Namespace", "Path", "Picker", "Preview", "Publisher", "Scene", "Section", "Shape", "Slider",
            "State", "Subject", "Table", "Text", "Toggle", "Transaction", "View", "Window",
        ]
        #expect(names.isDisjoint(with: taken))
    }
}
