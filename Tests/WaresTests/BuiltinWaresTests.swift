import Foundation
import GatewayWares
import HttpWare
import Testing

@Suite struct BuiltinWaresTests {
    @Test func `each name is there once, and says what it does`() {
        let names = BuiltinWares.all.map { $0.name.text }
        #expect(Set(names).count == names.count)
        for ware in BuiltinWares.all {
            #expect(ware.about.sentence.hasSuffix("."))
            #expect(!ware.about.source.isEmpty)
        }
    }

    @Test func `the doc comment of each begins with its sentence`() throws {
        let sources = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources").standardized
        var comments: [String: String] = [:]
        for module in ["GatewayWares", "ScriptWares", "Wares"] {
            let files = try #require(
                FileManager.default.enumerator(at: sources.appending(path: module), includingPropertiesForKeys: nil))
            for case let file as URL in files where file.pathExtension == "swift" {
                var comment: [Substring] = []
                for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                    let words = line.split(separator: " ")
                    if line.hasPrefix("///") {
                        comment += words.dropFirst()
                    } else if line.hasPrefix("public "),
                        let kind = words.firstIndex(where: { ["struct", "class"].contains($0) })
                    {
                        comments[String(words[kind + 1].prefix { $0 != ":" })] = comment.joined(separator: " ")
                        comment = []
                    } else if !line.hasPrefix("@") {
                        comment = []
                    }
                }
            }
        }
        for ware in BuiltinWares.all {
            let comment = try #require(comments["\(ware)"])
            #expect("\(comment) ".hasPrefix("\(ware.about.sentence) "), "\(ware)")
        }
    }

    @Test func `no other name of a ware is the name of a ware`() {
        let names = Set(BuiltinWares.all.map { $0.name.text.lowercased() })
        for ware in BuiltinWares.all {
            for other in ware.about.otherNames {
                #expect(!names.contains(other.lowercased()), "\(other) of \(ware.name)")
            }
        }
    }

    @Test func `each describes its options, with a sentence each`() {
        for ware in BuiltinWares.all {
            var reader = OptionsReader.describing()
            _ = ware.init(options: &reader)
            #expect(reader.finish().isEmpty)
            #expect(!reader.described.isEmpty, "\(ware.name)")
            for option in reader.described {
                #expect(!option.doc.isEmpty || option.key.contains("."), "\(ware.name).\(option.key)")
            }
        }
    }

    @Test func `observers, mirrors and wares that reuse responses fail open, everything else closed`() {
        let reusing: [ChainPlace?] = [.offline, .caching, .coalescing]
        for type in BuiltinWares.all {
            var reader = OptionsReader.describing()
            let ware = type.init(options: &reader)
            let isOpen = ware is any ExchangeObserver || ware is Mirror || reusing.contains(type.chainPlace)
            #expect(ware.failsOpen == isOpen, "\(type.name)")
        }
    }

    @Test func `a ware that controls access has a place where it can do so`() {
        for type in BuiltinWares.all {
            guard let rule = type as? any AccessRule.Type, rule.isAccessControl else { continue }
            #expect([.accessRules, .authentication].contains(type.chainPlace), "\(type.name)")
        }
    }
}
