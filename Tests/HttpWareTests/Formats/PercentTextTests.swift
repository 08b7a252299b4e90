import Testing

@testable import HttpWare

@Suite struct PercentTextTests {
    @Test func `each byte that is not unreserved is encoded, and read again`() {
        let all = (UInt8.min...UInt8.max).map { $0 }
        let encoded = PercentText.encoded(all)
        let plain = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8)
        #expect(encoded.count == plain.count + 3 * (256 - plain.count))
        #expect(encoded.allSatisfy { plain.contains($0) || $0 == 0x25 })
        #expect(PercentText.decoded(encoded) == all && PercentText.strictlyDecoded(encoded) == all)
        #expect(PercentText.text("aé /+~") == "a%C3%A9%20%2F%2B~")
        #expect(PercentText.text("é/") { $0 > 0x20 } == "%C3%A9/")
        #expect(PercentText.form("a b+é") == "a+b%2B%C3%A9")
    }

    @Test(arguments: ["%", "%4", "%%", "%4g", "%g4", "%+1", "% 1", "%-1", "a%"])
    func `a percent sign without two digits stands for itself, and strict readers refuse it`(
        text: String
    ) {
        #expect(PercentText.decoded(text.utf8) == Array(text.utf8))
        #expect(PercentText.strictlyDecoded(text.utf8) == nil)
    }

    @Test func `a plus sign means a space in forms only`() {
        #expect(PercentText.decoded("a+b%2b%2B".utf8, plusIsSpace: true) == Array("a b++".utf8))
        #expect(PercentText.decoded("a+b%zz".utf8) == Array("a+b%zz".utf8))
    }
}

@Suite struct HexTests {
    @Test func `each byte is written and read again`() {
        for byte in UInt8.min...UInt8.max {
            let lower = [Hex.lower(byte >> 4), Hex.lower(byte & 15)]
            let upper = [Hex.upper(byte >> 4), Hex.upper(byte & 15)]
            #expect(Hex.byte(lower[...], at: 0) == byte && Hex.byte(upper[...], at: 0) == byte)
            #expect(Hex.text([byte]) == String(decoding: lower, as: UTF8.self))
            let isDigit = "0123456789abcdefABCDEF".utf8.contains(byte)
            #expect((Hex.value(byte) != nil) == isDigit, "\(byte)")
        }
        #expect(Hex.byte([0x61], at: 0) == nil && Hex.byte([], at: 0) == nil)
    }

    @Test func `a number has the digits that are asked for`() {
        #expect(
            Hex.text(0xabc as UInt64) == "0000000000000abc"
                && Hex.text(.max as UInt64) == "ffffffffffffffff")
        #expect(
            Hex.text(0x12345 as UInt64, digits: 4) == "2345" && Hex.text(0 as UInt64, digits: 1) == "0")
    }
}

@Suite struct HtmlTextTests {
    @Test func `no character of markup is left in a text`() {
        #expect(
            HtmlText.escaped(#"<a b="c" d='e'>&`é"#)
                == "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;&#96;é")
    }
}
