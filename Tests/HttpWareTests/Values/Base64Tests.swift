import Testing

@testable import HttpWare

@Suite struct Base64Tests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `bytes become base64 with padding, RFC 4648 §10`(bytes: String, text: String) {
        #expect(Base64.encode(Array(bytes.utf8)) == text)
    }

    @Test(arguments: [
        ("", ""), ("Zg", "f"), ("Zm8", "fo"), ("Zm9v", "foo"), ("Zm9vYg", "foob"), ("Zm9vYmFy", "foobar"),
        ("--__", nil),
    ])
    func `RFC 4648 §10, base64url is read without padding`(text: String, bytes: String?) throws {
        let decoded = try #require(Base64.decodeUrl(text.utf8))
        #expect(bytes.map { Array($0.utf8) } ?? [0xfb, 0xef, 0xff] == decoded)
    }

    @Test(arguments: ["Z", "Zg==", "Zg=", "Zh", "Zm9", "Zm9v\n", " Zm9v", "Zm+v", "Zm/v", "Zm9vY", "é"])
    func `RFC 4648 §3.5, there is one spelling and no other alphabet`(text: String) {
        #expect(Base64.decodeUrl(text.utf8) == nil)
    }

    @Test(arguments: ["Zg==", "Zg", "Zm8=", "Zm9v", "+/+/"])
    func `base64 is read with padding or without`(text: String) { #expect(Base64.decode(text.utf8) != nil) }

    @Test(arguments: ["Zg=", "Zg===", "Zm9v=", "====", "=", "Zm-v", "Zh=="])
    func `other padding is refused`(text: String) { #expect(Base64.decode(text.utf8) == nil) }

    @Test(arguments: ["", "f", "fo", "foo", "foob", "fooba", "foobar"])
    func `encoded bytes are decoded to the same bytes`(text: String) {
        #expect(Base64.decode(Base64.encode(Array(text.utf8)).utf8) == Array(text.utf8))
    }
}
