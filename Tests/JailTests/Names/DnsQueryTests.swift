import HttpWare
import Testing

@testable import Jail

@Suite struct DnsQueryTests {
    /// A query with one question.
    static func query(_ name: String, _ kind: UInt16 = 1, flags: UInt8 = 1, class: UInt8 = 1) -> [UInt8] {
        var bytes: [UInt8] = [0x12, 0x34, flags, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        for label in name.split(separator: ".") { bytes += [UInt8(label.utf8.count)] + Array(label.utf8) }
        return bytes + [0, UInt8(kind >> 8), UInt8(kind & 0xff), 0, `class`]
    }

    private func answers(_ answers: Bool = true) -> NameAnswers {
        NameAnswers(names: SyntheticNames(), answers: answers)
    }

    /// The code, the number of answers, and the address at the end.
    private func outcome(_ message: [UInt8], _ answers: NameAnswers? = nil) -> (code: UInt8, answers: UInt8)? {
        (answers ?? self.answers()).response(to: message).map { ($0[3] & 0xf, $0[7]) }
    }

    @Test func `a name has an address of each family, whatever its case`() throws {
        let answers = self.answers()
        let response = try #require(answers.response(to: DnsQueryTests.query("API.Example.com")))
        // The same id, a response, recursion wanted and available, no error, one answer.
        #expect(response[..<8] == [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 1])
        // The question as it was asked, then a pointer to its name, the type, the class, 60 seconds and four bytes.
        let question = DnsQueryTests.query("API.Example.com").dropFirst(12)
        #expect(response[12..<12 + question.count].elementsEqual(question))
        #expect(response.dropLast(4).suffix(12) == [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4])
        let address = IPAddress(ipv4: response.suffix(4).reduce(0) { $0 << 8 | UInt32($1) })
        #expect(answers.names.destination(address, port: 443)?.host == "api.example.com")
        let six = try #require(answers.response(to: DnsQueryTests.query("api.example.com", 28)))
        #expect(six.dropLast(16).suffix(2) == [0, 16] && six.suffix(16).first == 0xfd)
    }

    @Test(arguments: [2, 5, 6, 15, 16, 33, 64, 65, 255] as [UInt16])
    func `other types exist for no name`(kind: UInt16) throws {
        let found = try #require(outcome(DnsQueryTests.query("a.test", kind)))
        #expect(found == (0, 0))
    }

    @Test(arguments: [
        "", "use-application-dns.net", "1.0.0.127.in-addr.arpa", "127.1", "0x7f000001", "1.2.3.4", "*.a.test",
        "-a.test",
        "a b.test", "a/b.test",
    ])
    func `a name that no host has does not exist`(name: String) throws {
        let code = try #require(outcome(DnsQueryTests.query(name))).code
        #expect(code == 3 || code == 1)
    }

    @Test func `localhost is the program's own`() throws {
        for name in ["localhost", "a.localhost"] {
            let response = try #require(answers().response(to: DnsQueryTests.query(name)))
            #expect(response.suffix(4) == [127, 0, 0, 1])
        }
    }

    @Test func `if names are refused, every query is`() throws {
        for name in ["a.test", "localhost"] {
            #expect(try #require(outcome(DnsQueryTests.query(name), answers(false))) == (5, 0))
        }
        #expect(try #require(outcome(DnsQueryTests.query("a.test", class: 3))) == (5, 0))
    }

    @Test func `a message that is not a query gets no response`() {
        #expect(outcome([]) == nil && outcome([1, 2, 3]) == nil)
        #expect(outcome(DnsQueryTests.query("a.test", flags: 0x81)) == nil)
    }

    @Test func `other operations are not supported`() throws {
        #expect(try #require(outcome(DnsQueryTests.query("a.test", flags: 0x11))).code == 4)
    }

    @Test func `every query that is cut off is malformed, and never read past its end`() throws {
        let whole = DnsQueryTests.query("api.example.com")
        for count in 12..<whole.count {
            #expect(try #require(outcome(Array(whole[..<count]))).code == 1, "\(count)")
        }
    }

    @Test func `pointers, long labels, long names and several questions are malformed`() throws {
        let head: [UInt8] = [0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
        let bodies: [[UInt8]] = [
            [0xc0, 0x0c, 0, 1, 0, 1], [64] + [UInt8](repeating: 97, count: 64) + [0, 0, 1, 0, 1],
            Array(repeating: [1, 97], count: 200).flatMap(\.self) + [0, 0, 1, 0, 1],
            [3, 97, 46, 98, 0, 0, 1, 0, 1], [1, 0, 0, 0, 1, 0, 1], [1, 0xff, 0, 0, 1, 0, 1],
        ]
        for body in bodies { #expect(try #require(outcome(head + body)).code == 1, "\(body)") }
        var several = DnsQueryTests.query("a.test")
        several[5] = 2
        #expect(try #require(outcome(several)).code == 1)
        several[4] = 1
        #expect(try #require(outcome(several)).code == 1)
    }

    @Test func `every byte changed to every value has a response of bounded length, or none`() {
        let answers = self.answers()
        let whole = DnsQueryTests.query("api.example.com")
        for place in whole.indices {
            for value in UInt8.min...UInt8.max {
                var changed = whole
                changed[place] = value
                guard let response = answers.response(to: changed) else { continue }
                #expect(response.count >= 12 && response.count <= changed.count + 28 && response[2] & 0x80 != 0)
            }
        }
    }
}
