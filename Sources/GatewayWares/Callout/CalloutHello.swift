import HttpWare

/// The halves of exchanges that a program decides about, and the content that it sees, in bytes.
struct CalloutWants: Sendable, Equatable {
    var request = true
    var response = false
    /// The most content of a request; `nil` if the program does not see it.
    var requestContent: Int?
    var responseContent: Int?

    /// The content of a message that is as large as one can be.
    static let largest = ByteCount.mebibytes(64)
}

/// The first message to a started program, and its answer.
struct CalloutHello: Sendable, Equatable {
    /// The halves that the program decides about; `nil` leaves the options as they are.
    var request: Bool?
    var response: Bool?
    var requestContent: Int?
    var responseContent: Int?
    /// Why the program cannot work as it is configured.
    var error: String?

    /// The most characters of an error that are shown.
    static let longestError = 2000

    /// The message, with the options of the ware for the program.
    static func message(options: Json) -> [UInt8] {
        Json.object([("version", .number(CalloutMessage.version)), ("half", "hello"), ("options", options)]).bytes
    }

    /// Reads an answer. Throws the first mistake in it.
    init(_ json: [UInt8]) throws(CalloutFault) {
        for member in try CalloutAnswer.object(json, members: ["request", "response", "content", "error"]) {
            switch (member.name, member.value) {
            case ("request", .boolean(let value)): request = value
            case ("response", .boolean(let value)): response = value
            case ("content", .object(let members)):
                try CalloutAnswer.requireKnown(members, ["request", "response"], in: "content")
                for member in members {
                    let size = try CalloutHello.size(member.value, at: "content.\(member.name)")
                    if member.name == "request" { requestContent = size } else { responseContent = size }
                }
            case ("error", .string(let text)): error = String(text.prefix(CalloutHello.longestError))
            case ("request", _), ("response", _): throw .wrong("\(member.name) must be true or false")
            case ("content", _): throw .wrong("content must be an object of byte counts")
            default: throw .wrong("error must be a text")
            }
        }
    }

    private static func size(_ value: JsonValue, at path: String) throws(CalloutFault) -> Int {
        guard let text = value.string, let size = try? ByteCount(optionText: text), size.bytes > 0,
            size <= CalloutWants.largest
        else {
            throw .wrong("\(path) must be a byte count such as \"64KiB\", at most \(CalloutWants.largest.optionText)")
        }
        return size.bytes
    }

    /// The options with the program's own wishes.
    func applied(to wants: CalloutWants) -> CalloutWants {
        CalloutWants(
            request: request ?? wants.request, response: response ?? wants.response,
            requestContent: requestContent ?? wants.requestContent,
            responseContent: responseContent ?? wants.responseContent)
    }
}
