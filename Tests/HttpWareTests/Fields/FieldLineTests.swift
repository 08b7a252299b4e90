import HttpWare
import Testing

@Suite struct FieldLineTests {
    @Test(arguments: [0, 1, 3600, .max, -1, .min])
    func `a number is a field value always, RFC 9110 §5.5`(number: Int) throws {
        #expect(try FieldLine(.retryAfter, number: number) == FieldLine(.retryAfter, "\(number)"))
    }

    @Test func `a literal makes the line that its text makes`() throws {
        #expect(try FieldLine(literal: .accept, "a/b, c/d") == FieldLine(.accept, "a/b, c/d"))
    }

    @Test(arguments: ["a\nb", "a\r\nB: c", "a\0b", "\u{7f}", " a", "a ", "\t"])
    func `text that cannot stand in a line is refused, RFC 9110 §5.5`(value: String) {
        #expect(throws: InvalidFieldValue.self) { try FieldLine(.accept, value) }
    }
}
