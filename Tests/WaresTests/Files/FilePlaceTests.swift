import Testing

@testable import GatewayWares

@Suite struct FilePlaceTests {
    @Test(
        arguments: [
            ("/", "", true), ("/a", "a", false), ("/a/", "a", true), ("/a/b.txt", "a/b.txt", false),
            ("/%41%20b", "A b", false), ("/a%5Cb", "a\\b", false), ("/a%3Fb", "a?b", false), ("/a%25b", "a%b", false),
            ("/%C3%A9", "é", false), ("/.well-known/x", ".well-known/x", false), ("/a..b", "a..b", false),
            ("/...", nil, false), ("", "", true),
        ] as [(String, String?, Bool)])
    func `a path names a place`(path: String, expected: String?, isFolder: Bool) {
        let place = FilePlace(path, showsHidden: false)
        #expect(place.map { String(decoding: $0.path, as: UTF8.self) } == expected)
        if expected != nil { #expect(place?.isFolder == isFolder) }
    }

    @Test(arguments: [
        "//", "//a", "/a//b", "/a//", "/..", "/a/..", "/a/../b", "/.", "/%2E%2E/a", "/%2e%2e", "/a%2Fb", "/a%2fb",
        "/a%00",
        "/%00", "/.env", "/.git/config", "/a/.hidden", "/%2Eenv", "/a%", "/a%2", "/a%zz", "a",
    ])
    func `a path that can name nothing has no place`(path: String) {
        #expect(FilePlace(path, showsHidden: false) == nil)
    }

    @Test func `hidden names have a place where they are served`() {
        #expect(FilePlace("/.env", showsHidden: true)?.path == Array(".env".utf8))
        #expect(FilePlace("/...", showsHidden: true)?.path == Array("...".utf8))
        #expect(FilePlace("/..", showsHidden: true) == nil)
        #expect(FilePlace("/./a", showsHidden: true) == nil)
    }

    @Test func `a path longer than a file system takes has no place`() {
        #expect(FilePlace("/" + String(repeating: "x", count: 4095), showsHidden: false) != nil)
        #expect(FilePlace("/" + String(repeating: "x", count: 4096), showsHidden: false) == nil)
    }
}
