import Foundation
import Testing

@testable import HttpWare

@Suite struct PlaceholderSearchTests {
    private let one = "hwp_0123456789ABCDEFGHIJKLMNOPQRSTUV"

    private func first(_ text: String, from: Int = 0) -> Range<Int>? {
        Array(text.utf8).withUnsafeBytes {
            var search = PlaceholderSearch($0)
            return search.next(from: from)?.range
        }
    }

    private func unfinished(_ text: String) -> Int {
        Array(text.utf8).withUnsafeBytes { PlaceholderSearch.unfinished(in: $0) }
    }

    /// The text with the characters at these places as escapes of the format.
    private func escaped(_ format: String, _ isEscaped: (Int) -> Bool) -> String {
        one.utf8.enumerated().map { index, byte in
            isEscaped(index) ? String(format: format, byte) : String(UnicodeScalar(byte))
        }.joined()
    }

    @Test func `a placeholder is found at each place, and nowhere else`() {
        #expect(first(one) == 0..<36)
        #expect(first("a\(one)b") == 1..<37)
        #expect(first("hwp_hwp_\(one)") == 8..<44)
        #expect(first("hwp_0123hwp\(one)") == 11..<47)
        #expect(first("\(one)\(one)", from: 1) == 36..<72)
        #expect(first(one, from: 1) == nil)
        for text in ["", "h", "hwp_", "_\(one.dropFirst(4))", String(one.dropLast()), "wp_\(one.dropFirst(4))"] {
            #expect(first(text) == nil, "\(text)")
        }
    }

    @Test(arguments: ["%%%02x", "%%%02X", "\\u%04x", "\\u%04X"])
    func `a placeholder is found whichever of its characters are escapes`(format: String) throws {
        let expected = try #require(TokenPlaceholder(one))
        var forms = [escaped(format) { _ in true }, escaped(format) { $0 % 2 == 0 }, escaped(format) { $0 % 3 == 0 }]
        for index in 0..<one.utf8.count { forms.append(escaped(format) { $0 == index }) }
        for form in forms {
            let before = "%\\u00%5F\\u005f_"
            let text = "\(before)\(form)_"
            let start = before.utf8.count
            Array(text.utf8).withUnsafeBytes { bytes in
                let find = PlaceholderSearch.first(in: bytes)
                #expect(find?.placeholder == expected, "\(form)")
                #expect(find?.range == start..<text.utf8.count - 1, "\(form)")
                #expect(find?.escapes == (format.hasPrefix("%") ? .percent : .json), "\(form)")
                // Wherever the bytes end, the beginning of the text is held back.
                for count in (start + 1)..<(start + form.utf8.count) {
                    let cut = UnsafeRawBufferPointer(rebasing: bytes[..<count])
                    #expect(PlaceholderSearch.unfinished(in: cut) == start, "\(form.prefix(count - start))")
                }
                #expect(PlaceholderSearch.unfinished(in: bytes) == bytes.count)
            }
        }
    }

    @Test func `escapes of other characters are not part of a placeholder`() {
        for text in [
            "%68wp%2D\(one.dropFirst(4))", "%68wp%5F%2D\(one.dropFirst(5))", "%h8wp%5F\(one.dropFirst(4))",
            "\\u0168wp_\(one.dropFirst(4))", "\\x68wp_\(one.dropFirst(4))", "%68%77%70%5", "%5F%5F%5F%5F",
        ] {
            #expect(first(text) == nil, "\(text)")
        }
        #expect(first("%68wp%5F\(one)") == 8..<44)
    }

    @Test func `an end that may be the beginning of a placeholder is known`() {
        #expect(unfinished("abc") == 3)
        #expect(unfinished("abch") == 3)
        #expect(unfinished("hwp_012") == 0)
        #expect(unfinished("hwp_012hw") == 0)
        #expect(unfinished("hwp_012hwp_") == 7)
        #expect(unfinished("hwp_012-hw") == 8)
        #expect(unfinished("xx" + one.dropLast()) == 2)
        #expect(unfinished("") == 0)
        #expect(unfinished("100%") == 3)
        #expect(unfinished("100%6") == 3)
        #expect(unfinished("100%7") == 5)
        #expect(unfinished("100%6g") == 6)
        #expect(unfinished("a\\u006") == 1)
        #expect(unfinished("a\\u004") == 6)
        #expect(unfinished("a\\n") == 3)
        #expect(unfinished("hwp_0%2") == 7)
        #expect(unfinished("hwp_0%3") == 0)
    }
}
