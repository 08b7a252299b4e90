import HttpWare

/// A DNS query with one question, and the responses to it. RFC 1035 §4.1
///
/// Reads any bytes. No name in a query is compressed: a pointer there is malformed.
struct DnsQuery: Equatable {
    /// The outcome of reading a message.
    enum Reading: Equatable {
        case query(DnsQuery)
        /// The message is answered with this, because it is malformed or is not a standard query.
        case answered([UInt8])
        /// The message is not a query, or has no head: it gets no response.
        case ignored
    }

    /// The types of records that have answers.
    enum Kind: UInt16 {
        case a = 1
        case aaaa = 28
    }

    /// The codes of responses. RFC 1035 §4.1.1
    enum Code: UInt8 {
        case none = 0
        case malformed = 1
        case noName = 3
        case unsupported = 4
        case refused = 5
    }

    /// The name in lower case, without a trailing dot; empty for the root.
    let name: String
    /// The type of the records that are asked for.
    let kind: UInt16
    /// Whether the class is the Internet's.
    let isInternet: Bool
    /// The first two bytes of the message, and whether the client asked for recursion.
    private let id: [UInt8]
    private let wantsRecursion: Bool
    /// The bytes of the question, which the response repeats.
    private let question: [UInt8]

    private static let headCount = 12
    private static let longestName = 255

    /// Reads a message.
    static func read(_ message: [UInt8]) -> Reading {
        guard message.count >= headCount, message[2] & 0x80 == 0 else { return .ignored }
        let id = Array(message[..<2])
        let wantsRecursion = message[2] & 1 != 0
        let bare = DnsQuery(id: id, wantsRecursion: wantsRecursion)
        guard message[2] & 0x78 == 0 else { return .answered(bare.response(.unsupported)) }
        guard message[4] == 0, message[5] == 1, let (name, end) = readName(message), message.count >= end + 4 else {
            return .answered(bare.response(.malformed))
        }
        return .query(
            DnsQuery(
                id: id, wantsRecursion: wantsRecursion, name: name,
                kind: UInt16(message[end]) << 8 | UInt16(message[end + 1]),
                isInternet: message[end + 2] == 0 && message[end + 3] == 1,
                question: Array(message[headCount..<end + 4])))
    }

    private init(
        id: [UInt8], wantsRecursion: Bool, name: String = "", kind: UInt16 = 0, isInternet: Bool = true,
        question: [UInt8] = []
    ) {
        self.id = id
        self.wantsRecursion = wantsRecursion
        self.name = name
        self.kind = kind
        self.isInternet = isInternet
        self.question = question
    }

    /// The name of the question, and the place behind it; `nil` if it is malformed.
    private static func readName(_ message: [UInt8]) -> (String, Int)? {
        var place = headCount
        var name: [UInt8] = []
        while place < message.count {
            let count = Int(message[place])
            place += 1
            if count == 0 { return (String(decoding: name, as: UTF8.self), place) }
            guard count < 64, place + count <= message.count, place + count - headCount < longestName else {
                return nil
            }
            if !name.isEmpty { name.append(UInt8(ascii: ".")) }
            for byte in message[place..<place + count] {
                // A dot in a label would be two labels in the text.
                guard byte > 0x20, byte < 0x7f, byte != UInt8(ascii: ".") else { return nil }
                name.append(byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte)
            }
            place += count
        }
        return nil
    }

    // MARK: Responses

    /// A response without records.
    func response(_ code: Code) -> [UInt8] { head(code, answers: 0) + question }

    /// A response with one address, of the family that is asked for.
    func response(_ address: [UInt8], seconds: UInt32) -> [UInt8] {
        // A pointer to the name of the question.
        var answer: [UInt8] = [0xc0, UInt8(DnsQuery.headCount)]
        answer += [UInt8(truncatingIfNeeded: kind >> 8), UInt8(truncatingIfNeeded: kind), 0, 1]
        for shift: UInt32 in [24, 16, 8, 0] { answer.append(UInt8(truncatingIfNeeded: seconds >> shift)) }
        answer += [0, UInt8(clamping: address.count)]
        return head(.none, answers: 1) + question + answer + address
    }

    private func head(_ code: Code, answers: UInt8) -> [UInt8] {
        // A response of a server that resolves names itself.
        id + [0x80 | (wantsRecursion ? 1 : 0), 0x80 | code.rawValue]
            + [0, question.isEmpty ? 0 : 1, 0, answers, 0, 0, 0, 0]
    }
}
