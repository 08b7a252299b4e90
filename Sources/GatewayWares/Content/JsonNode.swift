import HttpWare

/// The bytes that the nodes of a JSON text refer to: the original text, followed by the values that edits add.
struct JsonSource {
    private(set) var bytes: [UInt8]
    private var nodesLeft = 1_000_000

    /// Takes a text that `JsonScanner.check` has accepted.
    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Adds a value for an edit. The value was checked when the configuration was loaded.
    mutating func add(_ value: [UInt8]) -> JsonNode {
        let start = bytes.count
        bytes += value
        return JsonNode(start..<bytes.count)
    }

    /// Counts new nodes, so that a text of many small values cannot take unlimited memory.
    mutating func take(_ count: Int) throws(JsonFault) {
        nodesLeft -= count
        guard nodesLeft >= 0 else { throw JsonFault("the JSON text has too many members") }
    }
}

/// A value of a JSON text. It refers to its original bytes until an edit changes it.
struct JsonNode {
    struct Member {
        /// The name as written, with its quotes.
        var name: Range<Int>
        /// The name without quotes and escapes.
        var text: [UInt8]
        var value: JsonNode
    }

    indirect enum Parts {
        case list([JsonNode])
        case object([Member])
    }

    /// The range of the value in the source, with everything inside it.
    private(set) var range: Range<Int>
    /// The members or elements; `nil` until `open` reads them.
    var parts: Parts?
    /// Whether the value differs from its bytes in the source.
    var isChanged = false

    init(_ range: Range<Int>) { self.range = range }

    /// A new object without members.
    init(newObjectIn source: inout JsonSource) {
        self = source.add([0x7b, 0x7d])
        parts = .object([])
    }

    // MARK: Members and elements

    /// Reads the members or elements, if the value is an object or an array. Throws if two members have the same name, because
    /// readers would disagree about its value.
    mutating func open(_ source: inout JsonSource) throws(JsonFault) {
        guard parts == nil, let first = source.bytes[range].first, first == 0x7b || first == 0x5b else { return }
        let bytes = source.bytes
        var scanner = JsonScanner(bytes, checked: range)
        if try scanner.enterList() {
            var list: [JsonNode] = []
            while try scanner.hasNextElement() {
                try source.take(1)
                list.append(JsonNode(try scanner.skip()))
            }
            parts = .list(list)
        } else if try scanner.enterObject() {
            var members: [Member] = []
            var names: Set<[UInt8]> = []
            while let name = try scanner.nextName() {
                try source.take(1)
                let text = JsonString.text(of: name.lowerBound + 1..<name.upperBound - 1, in: bytes)
                guard names.insert(text).inserted else {
                    throw JsonFault("an object in the JSON text has two members of the same name")
                }
                members.append(Member(name: name, text: text, value: JsonNode(try scanner.skip())))
            }
            parts = .object(members)
        }
    }

    /// The array index that a name stands for; `count` for `-`. RFC 6901 §4.
    static func index(_ name: [UInt8], count: Int) -> Int? {
        if name == [0x2d] { return count }
        guard (1...9).contains(name.count), name[0] != 0x30 || name.count == 1, name.allSatisfy({ $0 &- 0x30 < 10 })
        else { return nil }
        return name.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    // MARK: Edits

    /// Edits each value that the steps lead to, and returns whether one changed. With `creating`, missing objects on the way are
    /// created.
    mutating func edit(
        _ steps: ArraySlice<JsonPointer.Step>, _ source: inout JsonSource, creating: Bool = false,
        _ body: (inout JsonNode, inout JsonSource) throws(JsonFault) -> Bool
    ) throws(JsonFault) -> Bool {
        guard let step = steps.first else {
            let hasChanged = try body(&self, &source)
            if hasChanged { isChanged = true }
            return hasChanged
        }
        let further = steps.dropFirst()
        try open(&source)
        var hasChanged = false
        switch parts {
        case .object(var members):
            // The members are moved out of the node during the change, so that they are not copied.
            parts = nil
            defer { parts = .object(members) }
            var isFound = false
            for index in members.indices {
                if case .name(let name) = step, members[index].text != name { continue }
                isFound = true
                if try members[index].value.edit(further, &source, creating: creating, body) { hasChanged = true }
            }
            if creating, !isFound, case .name(let name) = step {
                var value = JsonNode(newObjectIn: &source)
                if try value.edit(further, &source, creating: true, body) {
                    members.append(JsonNode.member(name, value, &source))
                    hasChanged = true
                }
            }
        case .list(var list):
            parts = nil
            defer { parts = .list(list) }
            if case .name(let name) = step {
                if let index = JsonNode.index(name, count: list.count), index < list.count {
                    hasChanged = try list[index].edit(further, &source, creating: creating, body)
                }
            } else {
                for index in list.indices
                where try list[index].edit(further, &source, creating: creating, body) { hasChanged = true }
            }
        case nil: break
        }
        if hasChanged { isChanged = true }
        return hasChanged
    }

    private static func member(_ name: [UInt8], _ value: JsonNode, _ source: inout JsonSource) -> Member {
        let written = source.add(JsonString.quoted(name))
        return Member(name: written.range, text: name, value: value)
    }

    /// The way in which a value is put into an object or array.
    enum Putting {
        /// The value replaces an existing one, or is added.
        case set
        /// Acts like `set` in an object. In an array, the value is inserted before the element. RFC 6902 §4.1.
        case insert
        /// The value replaces an existing one; it is not added.
        case replace
    }

    /// Puts a value into this object or array. Returns false if it is neither, or the name is not a valid place in it.
    mutating func put(
        _ value: JsonNode, at step: JsonPointer.Step, _ putting: Putting, _ source: inout JsonSource
    ) throws(JsonFault) -> Bool {
        try open(&source)
        try source.take(1)
        switch parts {
        case .object(var members):
            parts = nil
            defer { parts = .object(members) }
            guard case .name(let name) = step else {
                for index in members.indices { members[index].value = value }
                isChanged = isChanged || !members.isEmpty
                return !members.isEmpty
            }
            if let index = members.firstIndex(where: { $0.text == name }) {
                members[index].value = value
            } else if putting == .replace {
                return false
            } else {
                members.append(JsonNode.member(name, value, &source))
            }
        case .list(var list):
            parts = nil
            defer { parts = .list(list) }
            guard case .name(let name) = step else {
                for index in list.indices { list[index] = value }
                isChanged = isChanged || !list.isEmpty
                return !list.isEmpty
            }
            guard let index = JsonNode.index(name, count: list.count), index <= list.count else { return false }
            if index < list.count, putting != .insert {
                list[index] = value
            } else if putting == .replace {
                return false
            } else {
                list.insert(value, at: index)
            }
        case nil: return false
        }
        isChanged = true
        return true
    }

    /// Removes the values that the step leads to from this object or array. Returns the last of them; `nil` if there is none.
    mutating func take(_ step: JsonPointer.Step, _ source: inout JsonSource) throws(JsonFault) -> JsonNode? {
        try open(&source)
        var taken: JsonNode?
        switch parts {
        case .object(var members):
            parts = nil
            defer { parts = .object(members) }
            if case .name(let name) = step {
                guard let index = members.firstIndex(where: { $0.text == name }) else { return nil }
                taken = members.remove(at: index).value
            } else {
                taken = members.last?.value
                members = []
            }
        case .list(var list):
            parts = nil
            defer { parts = .list(list) }
            if case .name(let name) = step {
                guard let index = JsonNode.index(name, count: list.count), index < list.count else { return nil }
                taken = list.remove(at: index)
            } else {
                taken = list.last
                list = []
            }
        case nil: return nil
        }
        if taken != nil { isChanged = true }
        return taken
    }

    /// The value at the end of steps without a star; `nil` if it does not exist.
    mutating func value(_ steps: ArraySlice<JsonPointer.Step>, _ source: inout JsonSource) throws(JsonFault)
        -> JsonNode?
    {
        guard let step = steps.first else { return self }
        guard case .name(let name) = step else { return nil }
        try open(&source)
        switch parts {
        case .object(let members):
            guard var found = members.first(where: { $0.text == name })?.value else { return nil }
            return try found.value(steps.dropFirst(), &source)
        case .list(let list):
            guard let index = JsonNode.index(name, count: list.count), index < list.count else { return nil }
            var found = list[index]
            return try found.value(steps.dropFirst(), &source)
        case nil: return nil
        }
    }

    /// Renames a member, and removes another member that has the new name. Returns false if the member does not exist.
    mutating func rename(_ name: [UInt8], to other: [UInt8], _ source: inout JsonSource) throws(JsonFault) -> Bool {
        try open(&source)
        guard case .object(var members) = parts, name != other,
            let index = members.firstIndex(where: { $0.text == name })
        else { return false }
        parts = nil
        members[index] = JsonNode.member(other, members[index].value, &source)
        if let former = members.indices.first(where: { $0 != index && members[$0].text == other }) {
            members.remove(at: former)
        }
        parts = .object(members)
        isChanged = true
        return true
    }

    /// Keeps only the values that the paths lead to; returns false if nothing was removed. A value that no path can pass through
    /// is removed as well.
    mutating func keep(
        _ paths: [ArraySlice<JsonPointer.Step>], _ source: inout JsonSource
    ) throws(JsonFault) -> Bool {
        if paths.contains(where: \.isEmpty) { return false }
        try open(&source)
        var hasChanged = false
        switch parts {
        case .object(let members):
            var kept: [Member] = []
            for var member in members {
                let further = paths.filter { $0.first == .all || $0.first == .name(member.text) }.map { $0.dropFirst() }
                guard !further.isEmpty, try member.value.isReached(by: further, &source) else {
                    hasChanged = true
                    continue
                }
                if try member.value.keep(further, &source) { hasChanged = true }
                kept.append(member)
            }
            parts = .object(kept)
        case .list(let list):
            var kept: [JsonNode] = []
            for (index, element) in list.enumerated() {
                var element = element
                let further = paths.filter { path in
                    guard case .name(let name)? = path.first else { return true }
                    return JsonNode.index(name, count: list.count) == index
                }.map { $0.dropFirst() }
                guard !further.isEmpty, try element.isReached(by: further, &source) else {
                    hasChanged = true
                    continue
                }
                if try element.keep(further, &source) { hasChanged = true }
                kept.append(element)
            }
            parts = .list(kept)
        case nil:
            self = source.add(Array("null".utf8))
            hasChanged = true
        }
        if hasChanged { isChanged = true }
        return hasChanged
    }

    /// Whether a path ends at this value, or can lead into it.
    private mutating func isReached(
        by paths: [ArraySlice<JsonPointer.Step>], _ source: inout JsonSource
    ) throws(JsonFault) -> Bool {
        if paths.contains(where: \.isEmpty) { return true }
        try open(&source)
        return parts != nil
    }

    // MARK: Writing

    /// Appends the value. Unchanged values are copied from the source.
    func write(_ source: JsonSource, to output: inout [UInt8], upTo size: Int) throws(EditingFault) {
        guard output.count <= size else { throw .tooLarge(size) }
        guard isChanged, let parts else {
            output += source.bytes[range]
            return
        }
        switch parts {
        case .list(let list):
            output.append(0x5b)
            for (index, element) in list.enumerated() {
                if index > 0 { output.append(0x2c) }
                try element.write(source, to: &output, upTo: size)
            }
            output.append(0x5d)
        case .object(let members):
            output.append(0x7b)
            for (index, member) in members.enumerated() {
                if index > 0 { output.append(0x2c) }
                output += source.bytes[member.name]
                output.append(0x3a)
                try member.value.write(source, to: &output, upTo: size)
            }
            output.append(0x7d)
        }
    }
}
