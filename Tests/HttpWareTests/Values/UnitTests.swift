import HttpWare
import Testing

@Suite struct UnitTests {
    @Test(arguments: [
        ("0B", 0), ("512B", 512), ("64KiB", 65_536), ("10MiB", 10_485_760), ("1GiB", 1 << 30), ("1kB", 1000),
        ("10MB", 10_000_000), ("1GB", 1_000_000_000), ("8589934591GiB", 8_589_934_591 << 30),
    ])
    func `a byte count is a number and a unit`(text: String, bytes: Int) throws {
        #expect(try ByteCount(optionText: text).bytes == bytes)
        #expect(try ByteCount(optionText: ByteCount(bytes: bytes).description).bytes == bytes)
    }

    @Test(arguments: [
        "", "1", "B", "-1KiB", "+1B", "1mib", "1 MiB", "1MiB ", "1.5MiB", "01B", "1KB", "8589934592GiB",
        "99999999999999999999B", "١B",
    ])
    func `other texts are not byte counts`(text: String) {
        #expect(throws: OptionMistake.self) { try ByteCount(optionText: text) }
    }

    @Test func `a byte count is shown with the largest unit that says it exactly`() {
        #expect(ByteCount.mebibytes(10).description == "10MiB")
        #expect(ByteCount.bytes(1_500_000).description == "1500kB")
        #expect(ByteCount.bytes(1001).description == "1001B")
        #expect(ByteCount.bytes(0).description == "0B")
    }

    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("5s", .seconds(5)), ("2m", .seconds(120)), ("1h", .seconds(3600)),
        ("0s", .zero),
    ])
    func `a duration is a number and a unit`(text: String, duration: Duration) throws {
        #expect(try Duration(optionText: text) == duration)
    }

    @Test(arguments: [
        "", "5", "5S", "1d", "1.5s", "1m30s", "-1s", "5 s", "9223372036854775807h", "9223372036854775807ms",
    ])
    func `other texts are not durations`(text: String) {
        #expect(throws: OptionMistake.self) { try Duration(optionText: text) }
    }

    @Test func `a duration is shown with the largest unit that says it exactly`() {
        #expect(Duration.seconds(90).optionText == "90s")
        #expect(Duration.seconds(7200).optionText == "2h")
        #expect(Duration.milliseconds(1500).optionText == "1500ms")
        #expect(Duration.seconds(Int64.max).milliseconds == Int.max)
    }

    @Test func `a range of durations has its shorter end first`() throws {
        #expect(try DurationRange(optionText: "100ms..2s") == DurationRange(.milliseconds(100) ... .seconds(2)))
        for text in ["2s..1s", "1s", "1s..", "..1s", "1s...2s", "1s..2s..3s", ""] {
            #expect(throws: OptionMistake.self) { try DurationRange(optionText: text) }
        }
    }

    @Test func `a rate is a number and a period`() throws {
        #expect(try Rate(optionText: "100/s") == Rate(100, per: .second))
        #expect(try Rate(optionText: "600/m").perSecond == 10)
        #expect(try Rate(optionText: "10/h") < Rate(optionText: "1/m"))
        for text in ["100", "/s", "100/", "100/d", "1.5/s", "-1/s", "1/s/s", "100 / s"] {
            #expect(throws: OptionMistake.self) { try Rate(optionText: text) }
        }
    }

    @Test func `a ratio is from 0 to 1, or in percent`() throws {
        for (text, value) in [
            ("0.2", 0.2), ("20%", 0.2), ("0", 0), ("1", 1), ("1.0", 1), ("100%", 1), ("12.5%", 0.125),
        ] {
            #expect(try Ratio(optionText: text).value == value)
        }
        for text in ["", "%", ".5", "1.", "1.1", "101%", "-0.1", "1e-1", "0x1", "nan", "inf", "0,5", "1.0.0", "٠"] {
            #expect(throws: OptionMistake.self) { try Ratio(optionText: text) }
        }
    }

    @Test func `a set of statuses holds codes, classes and ranges`() throws {
        let set = try StatusSet(union: ["502", "4xx", "510-519"].map { try StatusSet(optionText: $0) })
        for (code, isIn) in [
            (502, true), (501, false), (400, true), (499, true), (500, false), (515, true), (520, false),
        ] {
            #expect(set.contains(code) == isIn)
        }
        #expect(set.description == "4xx, 502, 510-519")
        #expect(StatusSet([500...502, 503...504, 501...501]).ranges == [500...504])
        for text in ["", "99", "600", "6xx", "xx", "5x", "5XX", "599-500", "500-", "-500", "500-501-502", "+500"] {
            #expect(throws: OptionMistake.self) { try StatusSet(optionText: text) }
        }
    }

    @Test func `only true and false are booleans`() throws {
        #expect(try Bool(optionText: "true") && !Bool(optionText: "false"))
        for text in ["yes", "no", "on", "off", "True", "1", ""] {
            #expect(throws: OptionMistake.self) { try Bool(optionText: text) }
        }
    }

    @Test func `whole numbers are decimal and do not overflow`() throws {
        #expect(try Int(optionText: "-5") == -5 && Int(optionText: "9223372036854775807") == .max)
        for text in ["", "-", "+5", "05", "0x5", "5.0", "1_000", "9223372036854775808", "1e3"] {
            #expect(throws: OptionMistake.self) { try Int(optionText: text) }
        }
    }
}
