@testable import Credentials
@testable import HttpWare
@testable import GatewayWares

/// JSON that wares edit: what is accepted can be taken apart, and stays JSON whatever is done to it.
extension Fuzzing {
    public static func jsonEdits(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        guard let (choice, wire) = input(start, count) else { return }
        let loose = try? JsonValue(wire, rules: .lenient)
        if let strict = try? JsonValue(wire) {
            require(loose == nil || loose == strict, "\(text(wire)) has two readings")
            require((try? JsonValue(strict.json.utf8)) == strict, "\(text(wire)) was written as \(strict.json)")
        }
        guard let range = try? JsonScanner.check(wire) else {
            require((try? JsonValue(wire)) == nil, "valid JSON is refused: \(text(wire))")
            for edits in jsonEdits { require((try? edits.apply(to: wire, upTo: 4096)) == nil, "edited: \(text(wire))") }
            return
        }
        var source = JsonSource(wire)
        var root = JsonNode(range)
        if (try? open(&root, &source)) != nil {
            var output: [UInt8] = []
            guard (try? root.write(source, to: &output, upTo: 1 << 20)) != nil else { fatalError("not written") }
            guard let written = try? JsonScanner.check(output) else { fatalError("written as \(text(output))") }
            let again = source.add(output)
            let node = JsonNode(
                again.range.lowerBound + written.lowerBound..<again.range.lowerBound + written.upperBound)
            require(
                (try? JsonPatch.areEqual(JsonNode(range), node, &source)) == true,
                "\(text(wire)) was written as \(text(output))")
        } else {
            require((try? JsonValue(wire)) == nil, "valid JSON cannot be taken apart: \(text(wire))")
        }
        for edits in [jsonEdits[choice % jsonEdits.count]] {
            guard let edited = try? edits.apply(to: wire, upTo: 4096) else { continue }
            require((try? JsonScanner.check(edited)) != nil, "\(text(wire)) became \(text(edited))")
            require(edited.count <= 4096, "\(edited.count) bytes")
        }
    }

    /// Takes everything apart, so that all of it is written again.
    private static func open(_ node: inout JsonNode, _ source: inout JsonSource) throws {
        try node.open(&source)
        switch node.parts {
        case .list(var list):
            for index in list.indices { try open(&list[index], &source) }
            node.parts = .list(list)
        case .object(var members):
            for index in members.indices { try open(&members[index].value, &source) }
            node.parts = .object(members)
        case nil: return
        }
        node.isChanged = true
    }

    private static func pointer(_ text: String) -> JsonPointer {
        guard let pointer = JsonPointer(text) else { fatalError(text) }
        return pointer
    }

    private static let jsonEdits: [JsonEdits] = {
        var all: [JsonEdits] = []
        func add(_ change: (inout JsonEdits) -> Void) {
            var edits = JsonEdits()
            change(&edits)
            all.append(edits)
        }
        let (a, ab, star, first) = (pointer("/a"), pointer("/a/b"), pointer("/*/a"), pointer("/0"))
        add { $0.keep = [ab, star, first] }
        add { $0.remove = [ab, star, first, pointer("/*/*")] }
        add { $0.rename = [(a, Array("b".utf8)), (star, Array("\"".utf8))] }
        add { $0.move = [(ab, pointer("/c/d")), (star, pointer("/*/b")), (pointer("/1"), first)] }
        add { $0.set = [(ab, Array("[1]".utf8)), (star, Array("{}".utf8)), (pointer("/-"), Array("0".utf8))] }
        add { edits in
            edits.patch.operations = [
                .copy(from: pointer(""), to: a), .test(pointer("/a/a"), Array("1.0".utf8)), .move(from: ab, to: a),
            ]
        }
        add { edits in
            edits.patch.operations = [
                .add(pointer("/-"), Array("{\"a\":1}".utf8)), .replace(first, Array("null".utf8)),
                .remove(pointer("/1")),
            ]
        }
        return all
    }()
}
