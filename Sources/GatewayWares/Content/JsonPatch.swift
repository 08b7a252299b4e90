import HttpWare

/// A list of operations of which either all are applied, or none. RFC 6902.
struct JsonPatch: Sendable {
    enum Operation: Sendable {
        case add(JsonPointer, [UInt8])
        case remove(JsonPointer)
        case replace(JsonPointer, [UInt8])
        case move(from: JsonPointer, to: JsonPointer)
        case copy(from: JsonPointer, to: JsonPointer)
        case test(JsonPointer, [UInt8])
    }

    var operations: [Operation] = []

    /// The reason why a patch cannot be applied.
    private static func fault(_ pointer: JsonPointer, _ problem: String) -> JsonFault {
        JsonFault(
            "the patch cannot be applied: \(pointer.text.isEmpty ? "the whole text" : pointer.text) \(problem)")
    }

    /// Applies the operations. If it throws, the text must be discarded.
    func apply(to root: inout JsonNode, _ source: inout JsonSource) throws(JsonFault) {
        for operation in operations {
            switch operation {
            case .add(let pointer, let value):
                try JsonPatch.put(source.add(value), at: pointer, .insert, &root, &source)
            case .replace(let pointer, let value):
                try JsonPatch.put(source.add(value), at: pointer, .replace, &root, &source)
            case .remove(let pointer): _ = try JsonPatch.take(pointer, &root, &source)
            case .move(let from, let to):
                let value = try JsonPatch.take(from, &root, &source)
                try JsonPatch.put(value, at: to, .insert, &root, &source)
            case .copy(let from, let to):
                guard let value = try root.value(from.literalSteps[...], &source) else {
                    throw JsonPatch.fault(from, "is missing")
                }
                try JsonPatch.put(value, at: to, .insert, &root, &source)
            case .test(let pointer, let value):
                guard let found = try root.value(pointer.literalSteps[...], &source) else {
                    throw JsonPatch.fault(pointer, "is missing")
                }
                let expected = source.add(value)
                guard try JsonPatch.areEqual(found, expected, &source) else {
                    throw JsonPatch.fault(pointer, "has another value")
                }
            }
        }
    }

    private static func put(
        _ value: JsonNode, at pointer: JsonPointer, _ putting: JsonNode.Putting, _ root: inout JsonNode,
        _ source: inout JsonSource
    ) throws(JsonFault) {
        let steps = pointer.literalSteps
        guard let last = steps.last else {
            root = value
            return
        }
        let isPut = try root.edit(steps.dropLast(), &source) { (parent, source) throws(JsonFault) in
            try parent.put(value, at: last, putting, &source)
        }
        guard isPut else { throw fault(pointer, putting == .replace ? "is missing" : "has no place in the text") }
    }

    private static func take(
        _ pointer: JsonPointer, _ root: inout JsonNode, _ source: inout JsonSource
    ) throws(JsonFault) -> JsonNode {
        let steps = pointer.literalSteps
        guard let last = steps.last else { throw fault(pointer, "cannot be removed") }
        var taken: JsonNode?
        _ = try root.edit(steps.dropLast(), &source) { (parent, source) throws(JsonFault) in
            taken = try parent.take(last, &source)
            return taken != nil
        }
        guard let taken else { throw fault(pointer, "is missing") }
        return taken
    }

    // MARK: Equality

    /// Whether two values are equal: numbers by value, strings by characters, objects regardless of order. RFC 6902 §4.6.
    static func areEqual(_ one: JsonNode, _ other: JsonNode, _ source: inout JsonSource) throws(JsonFault) -> Bool {
        var (one, other) = (one, other)
        try one.open(&source)
        try other.open(&source)
        switch (one.parts, other.parts) {
        case (.list(let ones), .list(let others)):
            guard ones.count == others.count else { return false }
            for (one, other) in zip(ones, others) where try !areEqual(one, other, &source) { return false }
            return true
        case (.object(let ones), .object(let others)):
            guard ones.count == others.count else { return false }
            var values: [[UInt8]: JsonNode] = [:]
            for member in others { values[member.text] = member.value }
            for member in ones {
                guard let value = values[member.text], try areEqual(member.value, value, &source) else { return false }
            }
            return true
        case (nil, nil):
            let (one, other) = (one.range, other.range)
            let bytes = source.bytes
            guard let first = bytes[one].first, let second = bytes[other].first else { return false }
            if first == 0x22 || second == 0x22 {
                func text(_ string: Range<Int>) -> [UInt8] {
                    JsonString.text(of: string.lowerBound + 1..<string.upperBound - 1, in: bytes)
                }
                return first == second && text(one) == text(other)
            }
            if bytes[one].elementsEqual(bytes[other]) { return true }
            guard let one = JsonNumber(bytes[one]), let other = JsonNumber(bytes[other]) else { return false }
            return one == other
        default: return false
        }
    }
}

/// The exact value of a number, regardless of how it is written.
struct JsonNumber: Equatable {
    private var isNegative = false
    /// The digits without zeros at either end; empty for 0.
    private var digits: [UInt8] = []
    /// The value is 0.DIGITS times ten to this power.
    private var power = 0

    /// Reads a checked number. Returns `nil` for a word such as `true`, and for an exponent that is too large.
    init?(_ text: ArraySlice<UInt8>) {
        var rest = text
        if rest.first == 0x2d {
            isNegative = true
            rest.removeFirst()
        }
        let mantissa = rest.prefix { $0 | 0x20 != 0x65 }
        var places = 0
        var isFraction = false
        for byte in mantissa {
            if byte == 0x2e {
                isFraction = true
            } else {
                guard byte &- 0x30 < 10 else { return nil }
                digits.append(byte)
                if !isFraction { places += 1 }
            }
        }
        guard !digits.isEmpty else { return nil }
        var written = 0
        if mantissa.count < rest.count {
            var exponent = rest.dropFirst(mantissa.count + 1)
            let isSmall = exponent.first == 0x2d
            if isSmall || exponent.first == 0x2b { exponent.removeFirst() }
            exponent = exponent.drop { $0 == 0x30 }
            guard exponent.count <= 15 else { return nil }
            for byte in exponent {
                guard byte &- 0x30 < 10 else { return nil }
                written = written * 10 + Int(byte - 0x30)
            }
            if isSmall { written = -written }
        }
        let zeros = digits.prefix { $0 == 0x30 }.count
        digits.removeFirst(zeros)
        while digits.last == 0x30 { digits.removeLast() }
        if digits.isEmpty {
            isNegative = false
        } else {
            power = places - zeros + written
        }
    }
}

extension JsonPatch {
    private enum Word: String, OptionWord { case add, remove, replace, move, copy, test }

    /// Reads the list under a key.
    init(_ key: String, options: inout OptionsReader) {
        var operations: [Operation] = []
        options.readEach(
            key,
            doc: "operations of a JSON Patch (RFC 6902) on the result; all are done, or the content counts as broken"
        ) { options in
            var op: Word?
            var path: JsonPointer?
            var from: JsonPointer?
            options.read("op", into: &op, doc: "the operation")
            options.read("path", into: &path, doc: "where; * is a name like any other here")
            options.require("op", "path")
            options.read("from", into: &from, doc: "the place to move or copy from")
            let value = options.readNode("value", type: "any", doc: "the value to add or to compare with")
            options.require("from", with: "op", op, is: .move, .copy)
            options.only("from", with: "op", op, is: .move, .copy)
            options.require("value", with: "op", op, is: .add, .replace, .test)
            options.only("value", with: "op", op, is: .add, .replace, .test)
            guard let op, let path else { return }
            if op == .remove || op == .move, (op == .move ? from ?? path : path).names.isEmpty {
                options.fail(at: op == .move ? "from" : "path", "names the whole text, which cannot be removed")
            }
            if op == .move, let from, path.names.starts(with: from.names), path != from {
                options.fail(at: "path", "is inside of what is moved")
            }
            let bytes = value?.jsonValue.bytes ?? []
            switch op {
            case .add: operations.append(.add(path, bytes))
            case .remove: operations.append(.remove(path))
            case .replace: operations.append(.replace(path, bytes))
            case .test: operations.append(.test(path, bytes))
            case .move: if let from { operations.append(.move(from: from, to: path)) }
            case .copy: if let from { operations.append(.copy(from: from, to: path)) }
            }
        }
        self.operations = operations
        if operations.count > JsonPatch.most {
            options.fail(at: key, "has more than \(JsonPatch.most) operations")
        }
    }

    /// The maximum number of operations: each copy of a copy can nest the text more deeply.
    private static let most = 200
}
