/// Splits a stream of YAML into its documents (YAML 1.2 §9.2), each with the number of lines before it.
enum YamlDocuments {
    /// The maximum number of documents in one file.
    static let most = 2000

    /// The documents that are not empty, in file order.
    static func split(_ bytes: [UInt8]) -> [(bytes: [UInt8], linesBefore: Int)] {
        var documents: [(bytes: [UInt8], linesBefore: Int)] = []
        var current: [UInt8] = []
        var first = 0
        var number = 0
        func close() {
            let isEmpty = current.split(separator: UInt8(ascii: "\n")).allSatisfy { line in
                let rest = line.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
                return rest.isEmpty || rest.first == UInt8(ascii: "#") || line.first == UInt8(ascii: "%")
            }
            if !isEmpty, documents.count < most { documents.append((current + [UInt8(ascii: "\n")], first)) }
            current = []
        }
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            let isMarker = { (mark: String) in
                line.starts(with: Array(mark.utf8))
                    && (line.count == 3 || [0x20, 0x09, 0x0D].contains(line[line.startIndex + 3]))
            }
            if isMarker("---") {
                close()
                first = number
                // Content may follow on the same line.
                current = [0x20, 0x20, 0x20] + line.dropFirst(3)
            } else if isMarker("...") {
                close()
                first = number
            } else {
                if !current.isEmpty || number > first { current.append(UInt8(ascii: "\n")) }
                current += line
            }
            number += 1
        }
        close()
        return documents
    }
}
