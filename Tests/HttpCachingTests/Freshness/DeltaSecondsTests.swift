import HttpCaching
import Testing

@Suite struct DeltaSecondsTests {
    @Test(
        arguments: [
            ("0", 0), ("1", 1), ("007", 7), ("2147483648", 2_147_483_648), ("2147483649", 2_147_483_648),
            ("99999999999999999999999999", 2_147_483_648),
        ] as [(String, Int64)])
    func `digits are read and clamped, RFC 9111 §1.2.2`(text: String, seconds: Int64) {
        #expect(DeltaSeconds.read(text) == seconds)
    }

    @Test(arguments: ["", "-1", "+1", "1.5", "1 ", " 1", "0x1", "1e3", "١", "'1'", "\"1\""])
    func `any other text is not a number of seconds, RFC 9111 §1.2.2`(text: String) {
        #expect(DeltaSeconds.read(text) == nil)
    }
}
