import HttpWare

/// The edits of a JSON text, in the order in which they are applied.
struct JsonEdits: Sendable {
    var keep: [JsonPointer] = []
    var remove: [JsonPointer] = []
    var rename: [(pointer: JsonPointer, name: [UInt8])] = []
    var move: [(from: JsonPointer, to: JsonPointer)] = []
    /// The values to set, as JSON.
    var set: [(pointer: JsonPointer, value: [UInt8])] = []
    var patch = JsonPatch()

    var isEmpty: Bool {
        keep.isEmpty && remove.isEmpty && rename.isEmpty && move.isEmpty && set.isEmpty && patch.operations.isEmpty
    }

    /// The edited text, of at most `size` bytes; `nil` if nothing changes.
    func apply(to bytes: [UInt8], upTo size: Int) throws -> [UInt8]? {
        let range = try JsonScanner.check(bytes)
        var source = JsonSource(bytes)
        var root = JsonNode(range)
        try apply(to: &root, &source)
        var output = Array(bytes[..<range.lowerBound])
        output.reserveCapacity(bytes.count)
        try root.write(source, to: &output, upTo: size)
        output += bytes[range.upperBound...]
        guard output.count <= size else { throw EditingFault.tooLarge(size) }
        return output == bytes ? nil : output
    }

    private func apply(to root: inout JsonNode, _ source: inout JsonSource) throws(JsonFault) {
        if !keep.isEmpty { _ = try root.keep(keep.map { $0.steps[...] }, &source) }
        for pointer in remove {
            let steps = pointer.steps
            guard let last = steps.last else { continue }
            _ = try root.edit(steps.dropLast(), &source) { (parent, source) throws(JsonFault) in
                try parent.take(last, &source) != nil
            }
        }
        for (pointer, name) in rename {
            guard let last = pointer.names.last else { continue }
            _ = try root.edit(pointer.steps.dropLast(), &source) { (parent, source) throws(JsonFault) in
                try parent.rename(last, to: name, &source)
            }
        }
        for (from, to) in move { try move(from, to, &root, &source) }
        for (pointer, value) in set {
            let node = source.add(value)
            let steps = pointer.steps
            guard let last = steps.last else {
                root = node
                continue
            }
            _ = try root.edit(steps.dropLast(), &source, creating: true) { (parent, source) throws(JsonFault) in
                try parent.put(node, at: last, .set, &source)
            }
        }
        try patch.apply(to: &root, &source)
    }

    /// Moves a value within each object or array that both pointers lead to. If the target does not exist, the value stays.
    private func move(
        _ from: JsonPointer, _ to: JsonPointer, _ root: inout JsonNode, _ source: inout JsonSource
    ) throws(JsonFault) {
        let (origin, goal) = (from.steps, to.steps)
        let common = JsonEdits.common(from, to)
        guard let lastOrigin = origin.last, let lastGoal = goal.last else { return }
        _ = try root.edit(origin[..<common], &source) { (place, source) throws(JsonFault) in
            let former = place
            var taken: JsonNode?
            _ = try place.edit(origin[common...].dropLast(), &source) { (parent, source) throws(JsonFault) in
                taken = try parent.take(lastOrigin, &source)
                return taken != nil
            }
            guard let taken else { return false }
            let isPut = try place.edit(goal[common...].dropLast(), &source, creating: true) {
                (parent, source) throws(JsonFault) in
                try parent.put(taken, at: lastGoal, .set, &source)
            }
            if !isPut { place = former }
            return isPut
        }
    }

    /// The number of steps that both pointers begin with, not counting the last step of each.
    static func common(_ from: JsonPointer, _ to: JsonPointer) -> Int {
        zip(from.names.dropLast(), to.names.dropLast()).prefix { $0 == $1 }.count
    }
}

extension JsonEdits {
    /// Reads the options.
    init(options: inout OptionsReader) {
        self.init()
        var renamed: OptionMap<JsonPointer, String> = [:]
        var moved: OptionMap<JsonPointer, JsonPointer> = [:]
        options.read("keep", into: &keep, doc: "keeps only the members at these pointers")
        options.read("remove", into: &remove, doc: "removes the members at these pointers")
        options.read("rename", into: &renamed, doc: "gives the member at a pointer another name; it keeps its place")
        options.read("move", into: &moved, doc: "moves the value at a pointer to another pointer")
        let written = options.readNode(
            "set", type: "map of JSON pointer to any",
            doc: "sets the value at a pointer; missing objects on the way are added")
        patch = JsonPatch("patch", options: &options)

        if remove.contains(where: \.names.isEmpty) {
            options.fail(at: "remove", "names the whole text; write a member")
        }
        for entry in renamed {
            if entry.key.names.isEmpty || entry.key.names.last == [0x2a] {
                options.fail(
                    at: "rename", in: entry.location, "\(entry.key.text.quotedForErrors) does not end with a name")
            }
            rename.append((entry.key, Array(entry.value.utf8)))
        }
        for entry in moved {
            let (from, to) = (entry.key, entry.value)
            let common = JsonEdits.common(from, to)
            if from.names.isEmpty || to.names.isEmpty {
                options.fail(at: "move", in: entry.location, "names the whole text; write members")
            } else if to.names.starts(with: from.names) {
                options.fail(at: "move", in: entry.location, "\(to.text) is inside of \(from.text), or the same")
            } else if from.names[common...].contains([0x2a]) || to.names[common...].contains([0x2a]) {
                options.fail(
                    at: "move", in: entry.location, "a * must stand in the beginning that both pointers have in common")
            }
            move.append((from, to))
        }
        guard let written else { return }
        guard let entries = written.entries else {
            options.fail(at: "set", "\(written.shown) is not a map; write pointer: value")
            return
        }
        for entry in entries {
            guard let pointer = JsonPointer(entry.key) else {
                options.fail(
                    at: "set", in: entry.location,
                    "\(entry.key.quotedForErrors) is not a JSON pointer; write one such as /user/name or /items/*/id")
                continue
            }
            set.append((pointer, entry.value.jsonValue.bytes))
        }
    }
}
