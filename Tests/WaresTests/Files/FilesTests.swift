import Foundation
import Glibc
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

@Suite struct FilesTests {
    private let root = FileManager.default.temporaryDirectory.appending(path: "httpware-files-\(UUID())").path

    init() throws {
        try FileManager.default.createDirectory(atPath: "\(root)/docs/empty", withIntermediateDirectories: true)
        try write("index.html", "<p>home")
        try write("docs/index.html", "<p>docs")
        try write("a.txt", "0123456789")
        try write("app.js", "let a = 1")
        try write("app.js.gz", "gzipped")
        try write("app.js.br", "brotli")
        try write(".env", "SECRET=1")
        try write("large.bin", String(repeating: "0123456789abcdef", count: 20_000))
    }

    private func clean() { try? FileManager.default.removeItem(atPath: root) }

    private func write(_ path: String, _ text: String) throws {
        try text.write(toFile: "\(root)/\(path)", atomically: true, encoding: .utf8)
        // Before the clock of the tests.
        let date = Date(timeIntervalSince1970: 1_700_000_000 + Double(text.utf8.count))
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: "\(root)/\(path)")
    }

    private func serving(_ options: ConfigNode = [:]) throws -> TestExchange {
        let folder = ConfigNode.Entry(key: "root", location: .code, value: "\(root)")
        return try TestExchange(Files.self, options: ConfigNode(.map([folder] + (options.entries ?? []))))
    }

    private func get(_ path: String, _ fields: (FieldName, String)...) throws -> HttpRequest {
        var request = HttpRequest.get(path)
        for (name, value) in fields { try request.fields.append(name, value) }
        return request
    }

    // MARK: Files

    @Test func `a file is answered with its type, its length and its validators`() async throws {
        defer { clean() }
        let exchange = try serving(["cacheControl": "max-age=60"])
        let response = try await exchange.send(get("/a.txt"))
        #expect(response.status == .ok)
        #expect(response.content.text == "0123456789")
        #expect(response.fields[.contentType] == "text/plain; charset=utf-8")
        #expect(response.fields[.acceptRanges] == "bytes")
        #expect(response.fields[.cacheControl] == "max-age=60")
        #expect(response.fields[.etag].map { $0.hasPrefix("\"") && $0.hasSuffix("-a\"") } == true)
        #expect(response.fields[.lastModified]?.hasSuffix(" GMT") == true)
        #expect(response.fields[.vary] == nil)
        #expect(exchange.upstream.requests.isEmpty)
        #expect(exchange.outcomes.first?.responder.name == "Files")
    }

    @Test func `a large file is sent whole, and HEAD has its fields`() async throws {
        defer { clean() }
        let exchange = try serving()
        let response = try await exchange.send(get("/large.bin"))
        #expect(response.content.text == String(repeating: "0123456789abcdef", count: 20_000))
        #expect(response.fields[.contentType] == "application/octet-stream")
        let head = try await exchange.send(.make(.head, "/large.bin"))
        #expect(head.status == .ok)
        #expect(head.fields[.etag] == response.fields[.etag])
        #expect(head.content.bytes == nil)
    }

    @Test func `an empty file is an empty response`() async throws {
        defer { clean() }
        try write("empty.txt", "")
        let response = try await serving().send(get("/empty.txt"))
        #expect(response.status == .ok)
        #expect(response.content.isEmpty)
    }

    @Test func `a changed file is seen after a second, and a deleted one is gone`() async throws {
        defer { clean() }
        let exchange = try serving()
        let before = try await exchange.send(get("/a.txt"))
        try write("a.txt", "changed")
        #expect(try await exchange.send(get("/a.txt")).content.text == "0123456789")
        await exchange.advance(by: .seconds(1))
        let after = try await exchange.send(get("/a.txt"))
        #expect(after.content.text == "changed")
        #expect(after.fields[.etag] != before.fields[.etag])
        unlink("\(root)/a.txt")
        await exchange.advance(by: .seconds(1))
        #expect(try await exchange.send(get("/a.txt")).status == .notFound)
    }

    @Test func `methods that do not read are refused with 405 and Allow`() async throws {
        defer { clean() }
        let response = try await serving().send(.post("/a.txt"))
        #expect(response.status == .methodNotAllowed)
        #expect(response.fields[.allow] == "GET, HEAD")
        let onlyGet = try await serving(["methods": ["GET"]]).send(.make(.head, "/a.txt"))
        #expect(onlyGet.status == .methodNotAllowed)
        #expect(onlyGet.fields[.allow] == "GET")
    }

    @Test(arguments: [
        "/none.txt", "/.env", "/%2Eenv", "/a.txt/", "/a.txt/b", "//a.txt", "/docs//index.html", "/docs%2Findex.html",
        "/..%2Fa.txt", "/a.txt%5C", "/docs/empty/", "/etc/passwd", "/A.TXT",
    ])
    func `a file that does not exist, or is hidden, is 404`(path: String) async throws {
        defer { clean() }
        #expect(try await serving().send(get(path)).status == .notFound)
    }

    @Test func `links that lead out, loops and pipes are 404`() async throws {
        defer { clean() }
        for (link, target) in [("out", "/etc/passwd"), ("up", "../.."), ("loop", "loop"), ("in", "docs/index.html")] {
            try FileManager.default.createSymbolicLink(atPath: "\(root)/\(link)", withDestinationPath: target)
        }
        try #require(mkfifo("\(root)/fifo", 0o600) == 0)
        let exchange = try serving(["browse": true])
        for path in ["/out", "/up", "/up/", "/up/etc/passwd", "/loop", "/fifo"] {
            #expect(try await exchange.send(get(path)).status == .notFound, "\(path)")
        }
        #expect(try await exchange.send(get("/in")).content.text == "<p>docs")
    }

    @Test func `hidden names are served if the configuration says so`() async throws {
        defer { clean() }
        #expect(try await serving(["hidden": true]).send(get("/.env")).content.text == "SECRET=1")
    }

    @Test func `types are those of the configuration, then the known ones`() async throws {
        defer { clean() }
        let exchange = try serving(["types": [".TXT": "text/x-notes", "js": "text/x-script"]])
        #expect(try await exchange.send(get("/a.txt")).fields[.contentType] == "text/x-notes")
        #expect(try await exchange.send(get("/index.html")).fields[.contentType] == "text/html; charset=utf-8")
    }

    @Test func `a file from the future does not show its date`() async throws {
        defer { clean() }
        let date = Date(timeIntervalSince1970: 4_000_000_000)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: "\(root)/a.txt")
        let response = try await serving().send(get("/a.txt"))
        #expect(response.fields[.lastModified] == nil)
        #expect(response.fields[.etag] != nil)
    }

    // MARK: Folders

    @Test func `a folder answers with its index, and without a slash redirects to itself`() async throws {
        defer { clean() }
        let exchange = try serving()
        #expect(try await exchange.send(get("/")).content.text == "<p>home")
        #expect(try await exchange.send(get("/docs/")).content.text == "<p>docs")
        let response = try await exchange.send(get("/docs?a=b"))
        #expect(response.status == .permanentRedirect)
        #expect(response.fields[.location] == "./docs/?a=b")
    }

    @Test func `a redirect stays on its host, whatever the path begins with`() async throws {
        defer { clean() }
        let names = ["evil.example", "a:b", "\\evil"]
        for name in names {
            try FileManager.default.createDirectory(atPath: "\(root)/\(name)", withIntermediateDirectories: true)
        }
        let exchange = try serving()
        #expect(try await exchange.send(get("/evil.example")).fields[.location] == "./evil.example/")
        #expect(try await exchange.send(get("/a:b")).fields[.location] == "./a:b/")
        #expect(try await exchange.send(get("/%5Cevil")).fields[.location] == "./%5Cevil/")
        #expect(try await exchange.send(get("//evil.example")).status == .notFound)
    }

    @Test func `strip removes whole segments, and the stripped folder redirects too`() async throws {
        defer { clean() }
        let exchange = try serving(["strip": "/site/v1"])
        #expect(try await exchange.send(get("/site/v1/a.txt")).content.text == "0123456789")
        #expect(try await exchange.send(get("/site/v1/")).content.text == "<p>home")
        #expect(try await exchange.send(get("/site/v1")).fields[.location] == "./v1/")
        #expect(try await exchange.send(get("/site/v12/a.txt")).status == .notFound)
        #expect(try await exchange.send(get("/a.txt")).content.text == "0123456789")
    }

    @Test func `the fallback answers for what is not there, but not for hidden names`() async throws {
        defer { clean() }
        let exchange = try serving(["fallback": "/index.html"])
        for path in ["/users/7", "/none.js", "/docs/empty/"] {
            let response = try await exchange.send(get(path))
            #expect(response.status == .ok, "\(path)")
            #expect(response.content.text == "<p>home", "\(path)")
        }
        #expect(try await exchange.send(get("/.git/config")).status == .notFound)
        #expect(try await exchange.send(get("/a.txt")).content.text == "0123456789")
    }

    @Test func `a list is escaped, sorted, and shows nothing hidden`() async throws {
        defer { clean() }
        let folder = "\(root)/docs/empty"
        for name in ["b\"<i>&.txt", "a'b", "c:d", "\u{1F600} é.txt", ".hidden"] {
            try "x".write(toFile: "\(folder)/\(name)", atomically: false, encoding: .utf8)
        }
        try FileManager.default.createDirectory(atPath: "\(folder)/z", withIntermediateDirectories: false)
        let response = try await serving(["browse": true]).send(get("/docs/empty/"))
        #expect(response.status == .ok)
        #expect(response.fields[.contentType] == "text/html; charset=utf-8")
        #expect(response.fields["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
        let page = try #require(response.content.text)
        let links = page.matches(of: /<a href="([^"]*)">([^<]*)<\/a>/).map { "\($0.1) \($0.2)" }
        #expect(
            links == [
                "../ ../", "./z/ z/", "./a%27b a&#39;b", "./b%22%3Ci%3E%26.txt b&quot;&lt;i&gt;&amp;.txt",
                "./c%3Ad c:d",
                "./%F0%9F%98%80%20%C3%A9.txt \u{1F600} é.txt",
            ])
        #expect(try await serving().send(get("/docs/empty/")).status == .notFound)
    }

    // MARK: Siblings

    @Test func `a sibling that the client accepts is sent, and all of them vary`() async throws {
        defer { clean() }
        let exchange = try serving()
        let plain = try await exchange.send(get("/app.js"))
        #expect(plain.content.text == "let a = 1")
        #expect(plain.fields[.vary] == "Accept-Encoding")
        let gzip = try await exchange.send(get("/app.js", (.acceptEncoding, "gzip")))
        #expect(gzip.content.text == "gzipped")
        #expect(gzip.fields[.contentEncoding] == "gzip")
        #expect(gzip.fields[.contentType] == "text/javascript; charset=utf-8")
        #expect(gzip.fields[.vary] == "Accept-Encoding")
        let both = try await exchange.send(get("/app.js", (.acceptEncoding, "gzip, br, zstd")))
        #expect(both.fields[.contentEncoding] == "br")
        #expect(Set([plain, gzip, both].map { $0.fields[.etag] }).count == 3)
        let none = try await exchange.send(get("/app.js", (.acceptEncoding, "br;q=0, gzip;q=0")))
        #expect(none.fields[.contentEncoding] == nil)
        let off = try serving(["precompressed": []])
        let untouched = try await off.send(get("/app.js", (.acceptEncoding, "gzip")))
        #expect(untouched.content.text == "let a = 1")
        #expect(untouched.fields[.vary] == nil)
    }

    // MARK: Conditions and ranges

    @Test func `a client that has the file is told so`() async throws {
        defer { clean() }
        let exchange = try serving(["cacheControl": "no-cache"])
        let first = try await exchange.send(get("/a.txt"))
        let tag = try #require(first.fields[.etag])
        let modified = try #require(first.fields[.lastModified])
        let same = try await exchange.send(get("/a.txt", (.ifNoneMatch, "\"x\", \(tag)")))
        #expect(same.status == .notModified)
        #expect(same.content.isEmpty)
        #expect(same.fields[.etag] == tag)
        #expect(same.fields[.cacheControl] == "no-cache")
        #expect(same.fields[.contentType] == nil)
        #expect(try await exchange.send(get("/a.txt", (.ifModifiedSince, modified))).status == .notModified)
        #expect(try await exchange.send(get("/a.txt", (.ifNoneMatch, "\"x\""))).status == .ok)
        #expect(try await exchange.send(get("/a.txt", (.ifMatch, "\"x\""))).status == .preconditionFailed)
        #expect(try await exchange.send(get("/a.txt", (.ifMatch, tag))).status == .ok)
        let old = "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(try await exchange.send(get("/a.txt", (.ifUnmodifiedSince, old))).status == .preconditionFailed)
        #expect(try await exchange.send(get("/a.txt", (.ifModifiedSince, old))).status == .ok)
    }

    @Test(arguments: [
        ("bytes=0-0", "0", "bytes 0-0/10"), ("bytes=2-4", "234", "bytes 2-4/10"), ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-3", "789", "bytes 7-9/10"), ("bytes=-99", "0123456789", "bytes 0-9/10"),
        ("bytes=8-99999999999999999999", "89", "bytes 8-9/10"),
    ])
    func `one range is a part`(range: String, content: String, field: String) async throws {
        defer { clean() }
        let response = try await serving().send(get("/a.txt", (.range, range)))
        #expect(response.status == .partialContent)
        #expect(response.content.text == content)
        #expect(response.fields[.contentRange] == field)
    }

    @Test(arguments: [
        ("bytes=0-1,4-5", "012345", "bytes 0-5/10"), ("bytes=0-1,0-1,0-1", "01", "bytes 0-1/10"),
        ("bytes=4-6,2-4,9-20,30-", "23456789", "bytes 2-9/10"),
    ])
    func `ranges that overlap or almost touch are one part`(range: String, content: String, field: String) async throws
    {
        defer { clean() }
        let response = try await serving().send(get("/a.txt", (.range, range)))
        #expect(response.status == .partialContent)
        #expect(response.content.text == content)
        #expect(response.fields[.contentRange] == field)
    }

    @Test(arguments: ["/medium.txt", "/large.bin"])
    func `several ranges are several parts, in the order asked`(path: String) async throws {
        defer { clean() }
        let size = path == "/large.bin" ? 320_000 : 1000
        try write("medium.txt", String(repeating: "0123456789", count: 100))
        let response = try await serving().send(get(path, (.range, "bytes=700-703,-2,0-3,2-5")))
        #expect(response.status == .partialContent)
        #expect(response.fields[.contentRange] == nil)
        let type = try #require(response.fields[.contentType])
        let boundary = try #require(type.split(separator: "multipart/byteranges; boundary=").first)
        #expect(boundary.count > 10)
        let text = try #require(response.content.text)
        let whole = try #require(try await serving().send(get(path)).content.text)
        let letters = Array(whole)
        let part = { (first: Int, last: Int) in
            let inner = path == "/large.bin" ? "application/octet-stream" : "text/plain; charset=utf-8"
            return
                "\r\n--\(boundary)\r\nContent-Type: \(inner)\r\nContent-Range: bytes \(first)-\(last)/\(size)\r\n\r\n"
                + String(letters[first...last])
        }
        #expect(
            text == part(700, 703) + part(size - 2, size - 1) + part(0, 5) + "\r\n--\(boundary)--\r\n")
    }

    @Test func `several ranges of a compressed sibling get all of it`() async throws {
        defer { clean() }
        try write("a.txt.gz", String(repeating: "z", count: 1000))
        let response = try await serving().send(
            get("/a.txt", (.acceptEncoding, "gzip"), (.range, "bytes=0-1,500-501")))
        #expect(response.status == .ok)
        #expect(response.fields[.contentEncoding] == "gzip")
        #expect(response.content.bytes?.count == 1000)
    }

    @Test(arguments: [
        "bytes=x", "lines=1-2", "bytes=4-2", "bytes=",
        "bytes=" + (0...16).map { "\($0 * 200)-\($0 * 200)" }.joined(separator: ","),
    ])
    func `too many ranges, and an invalid range, get the whole`(range: String) async throws {
        defer { clean() }
        let response = try await serving().send(get("/a.txt", (.range, range)))
        #expect(response.status == .ok)
        #expect(response.content.text == "0123456789")
        #expect(response.fields[.contentRange] == nil)
    }

    @Test func `a range behind the end is 416, and a large file is sent from the middle`() async throws {
        defer { clean() }
        let exchange = try serving()
        let behind = try await exchange.send(get("/a.txt", (.range, "bytes=10-")))
        #expect(behind.status == .rangeNotSatisfiable)
        #expect(behind.fields[.contentRange] == "bytes */10")
        let large = try await exchange.send(get("/large.bin", (.range, "bytes=160000-300000")))
        #expect(large.status == .partialContent)
        #expect(large.content.bytes?.count == 140_001)
        #expect(large.content.text?.hasPrefix("0123456789abcdef0") == true)
    }

    @Test func `If-Range sends the part of the same file only`() async throws {
        defer { clean() }
        let exchange = try serving()
        let tag = try #require(try await exchange.send(get("/a.txt")).fields[.etag])
        let same = try await exchange.send(get("/a.txt", (.range, "bytes=1-1"), (.ifRange, tag)))
        #expect(same.status == .partialContent)
        let other = try await exchange.send(get("/a.txt", (.range, "bytes=1-1"), (.ifRange, "\"x\"")))
        #expect(other.status == .ok)
    }

    // MARK: Options

    @Test func `a folder that does not exist is a mistake in the configuration`() throws {
        defer { clean() }
        for (path, problem) in [("\(root)/none", "No such file or directory"), ("\(root)/a.txt", "Not a directory")] {
            do {
                _ = try TestExchange.make(Files.self, ["root": "\(path)"])
                Issue.record("\(path) was opened")
            } catch let error as ConfigError {
                #expect(error.message.contains("\"\(path)\" cannot be opened: \(problem)"), "\(error)")
            }
        }
    }

    @Test(
        arguments: [
            ["index": "../x"], ["index": "a/"], ["fallback": "/"], ["fallback": "a/../../b"], ["strip": "site"],
            ["cacheControl": "a\nb"], ["types": ["a.b": "text/plain"]], ["types": ["md": "markdown"]],
            ["types": ["md": "text/*"]], ["methods": ["POST"]], ["methods": []], ["precompressed": ["lzma"]],
        ] as [ConfigNode])
    func `an invalid option is a mistake`(options: ConfigNode) throws {
        defer { clean() }
        #expect(throws: ConfigError.self) { try serving(options) }
    }

    @Test func `root is needed`() { #expect(throws: ConfigError.self) { try TestExchange.make(Files.self) } }
}
