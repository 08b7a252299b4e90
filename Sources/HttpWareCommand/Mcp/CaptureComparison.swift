import Capturing
import HttpWare

/// The differences between two captures.
struct CaptureComparison {
    private let (first, second): (JsonValue, JsonValue)
    /// The contents of both, by message.
    private let contents: [String: [[UInt8]?]]

    init(_ first: JsonValue, _ second: JsonValue, contents: [String: [[UInt8]?]]) {
        self.first = first
        self.second = second
        self.contents = contents
    }

    var json: Json {
        let members = ["method", "url", "status", "route", "service", "fault", "duration"].compactMap {
            name -> (String, Json)? in
            let (a, b) = (first[name] ?? .null, second[name] ?? .null)
            return a == b ? nil : (name, .object([("a", Json(a)), ("b", Json(b))]))
        }
        let messages = ["request", "response"].map { part in
            (part, Json.object([("headers", .list(headers(part))), ("content", content(part))]))
        }
        return .object(members + messages)
    }

    /// The fields whose values differ. The order of repeated lines counts.
    private func headers(_ part: String) -> [Json] {
        func values(_ capture: JsonValue) -> [(name: String, values: [String])] {
            var all: [(name: String, values: [String])] = []
            for field in capture[part]?["client"]?["headers"]?.elements ?? [] {
                guard let name = field["name"]?.string, let value = field["value"]?.string else { continue }
                if let index = all.firstIndex(where: { $0.name.lowercased() == name.lowercased() }) {
                    all[index].values.append(value)
                } else {
                    all.append((name, [value]))
                }
            }
            return all
        }
        let (a, b) = (values(first), values(second))
        var names = a.map(\.name)
        names += b.map(\.name).filter { name in !names.contains { $0.lowercased() == name.lowercased() } }
        return names.compactMap { name in
            let left = a.first { $0.name.lowercased() == name.lowercased() }?.values ?? []
            let right = b.first { $0.name.lowercased() == name.lowercased() }?.values ?? []
            guard left != right else { return nil }
            return .object([
                ("name", .text(name)), ("a", .list(left.map(Json.text))), ("b", .list(right.map(Json.text))),
            ])
        }
    }

    /// The sizes, and the first line that differs.
    private func content(_ part: String) -> Json {
        let pair = contents[part] ?? []
        guard pair.count == 2 else { return .null }
        let (a, b) = (pair[0] ?? [], pair[1] ?? [])
        var members: [(String, Json)] = [
            ("same", .bool(a == b)), ("sizes", .list([.number(a.count), .number(b.count)])),
        ]
        guard a != b else { return .object(members) }
        let place = zip(a, b).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? min(a.count, b.count)
        members.append(("firstDifference", .number(place)))
        members.append(("line", .number(a[..<min(place, a.count)].count { $0 == 0x0a } + 1)))
        members.append(("a", .text(CaptureComparison.around(place, a))))
        members.append(("b", .text(CaptureComparison.around(place, b))))
        return .object(members)
    }

    private static func around(_ place: Int, _ bytes: [UInt8]) -> String {
        let start = max(0, place - 80)
        guard start < bytes.count else { return "" }
        return String(decoding: bytes[start..<min(bytes.count, place + 120)], as: UTF8.self)
    }
}
