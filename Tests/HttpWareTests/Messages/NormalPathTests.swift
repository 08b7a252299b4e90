import Testing

@testable import HttpWare

/// RFC 3986 §6.2.2, and what the gateway makes of paths.
@Suite struct NormalPathTests {
    private func normalise(_ path: String) -> (outcome: NormalPath.Outcome, path: String) {
        var output = Array("before".utf8)
        let outcome = Array(path.utf8).withUnsafeBufferPointer { NormalPath.normalise($0, into: &output) }
        return (outcome, String(decoding: output.dropFirst(6), as: UTF8.self))
    }

    @Test(arguments: [
        "/", "/a", "/a/", "//", "/a//b", "/a.b", "/.a", "/..a", "/a..", "/a/...", "/%2F", "/%5C", "/%25", "/%20",
        "/a;b=c", "/\u{e9}",
        "/a\\b", "/%E4%B8%AD", "/...", "/a/.b/c", "/%2525",
    ])
    func `a normal path is the same`(path: String) {
        #expect(normalise(path) == (.same, ""))
    }

    @Test(arguments: [
        ("/%7Ejoe", "/~joe"), ("/%41%62", "/Ab"), ("/%2f", "/%2F"), ("/%e4%b8%ad", "/%E4%B8%AD"), ("/%2D%2d", "/--"),
        ("/%25%32%65", "/%252e"), ("/%aF", "/%AF"),
    ])
    func `percent-encodings are in upper case, and unreserved characters decoded`(path: String, normal: String) {
        // RFC 3986 §6.2.2.1, §6.2.2.2.
        #expect(normalise(path) == (.changed(dotSegments: false, encodedDotSegments: false), normal))
    }

    @Test(arguments: [
        ("/.", "/"), ("/./", "/"), ("/a/.", "/a/"), ("/a/./b", "/a/b"), ("/a/..", "/"), ("/a/../", "/"),
        ("/a/../b", "/b"),
        ("/a/b/../c", "/a/c"), ("/a/b/../../c", "/c"), ("/a//../b", "/a/b"), ("/a/b/c/./../../g", "/a/g"),
        ("/mid/content=5/../6", "/mid/6"),
        ("//..", "/"), ("/a/b/..", "/a/"), ("/././.", "/"),
    ])
    func `dot segments are removed`(path: String, normal: String) {
        // RFC 3986 §5.2.4, §6.2.2.3.
        #expect(normalise(path) == (.changed(dotSegments: true, encodedDotSegments: false), normal))
    }

    @Test(arguments: ["/a/%2e", "/a/%2E%2e/b", "/a/.%2e", "/a/%2e./b", "/%2e/a"])
    func `dot segments that are encoded are removed and told`(path: String) {
        guard case .changed(true, true) = normalise(path).outcome else {
            Issue.record("\(normalise(path))")
            return
        }
    }

    @Test(arguments: [
        "/a/..%2fb", "/a/..%2F", "/a%2f..", "/a%2f../b", "/a%5C..%5cb", "/a/..%5c", "/a\\..\\b", "/a/..\\b", "/a\\..",
        "/a/%2e%2e%2fb",
        "/a%2f%2e%2e/b", "/.%5cx", "/a%2f.",
    ])
    func `dot segments between separators that some servers see are told`(path: String) {
        guard case .changed(_, true) = normalise(path).outcome else {
            Issue.record("\(normalise(path))")
            return
        }
        var target = RequestTarget()
        #expect(throws: GatewayError.self) {
            try target.parse(Array(path.utf8).span.bytes, isConnect: false, isReverse: true)
        }
        #expect(throws: Never.self) {
            try target.parse(Array(path.utf8).span.bytes, isConnect: false, isReverse: false)
        }
    }

    @Test(arguments: [
        "/..", "/../a", "/a/../..", "/a/../../b", "/%2e%2e", "/%00", "/a%00b", "/%", "/%a", "/%4", "/%zz", "/%4g",
        "/a%", "/./..",
    ])
    func `a path above the root, a zero and a lone percent sign are refused, and nothing is left`(path: String) {
        guard case (.refused, "") = normalise(path) else {
            Issue.record("\(normalise(path))")
            return
        }
    }

    @Test(arguments: [
        ("/..", "/"), ("/../a", "/a"), ("/a/../../b", "/b"), ("/../../..", "/"), ("/%2e%2e/a", "/a"), ("/%00", nil),
        ("/a%00b", nil), ("/%", "/%25"), ("/100%", "/100%25"), ("/a%zz", "/a%25zz"), ("/%4", "/%254"),
        ("/%%41", "/%25A"), ("/%%341", "/%2541"), ("/a%/../b", "/b"), ("/%/%2e/x", "/%25/x"), ("/%a", "/%25a"),
    ])
    func `a path that is passed on always has a normal form, which is its own normal form`(
        path: String, normal: String?
    ) {
        func passed(_ path: String) -> String? {
            var output: [UInt8] = []
            let outcome = Array(path.utf8).withUnsafeBufferPointer {
                NormalPath.normalise($0, into: &output, isPassed: true)
            }
            if case .refused(let reason) = outcome { Issue.record("\(reason)") }
            return outcome == .same ? nil : String(decoding: output, as: UTF8.self)
        }
        #expect(passed(path) == normal)
        #expect(passed(normal ?? path) == nil)
        #expect(normal == nil || normalise(normal ?? "").outcome == .same)
    }

    /// RFC 3986 §5.2.4 and §6.2.2 as plainly as can be; `nil` where the path is refused.
    private func model(_ path: String) -> String? {
        var text: [UInt8] = []
        var bytes = Array(path.utf8)[...]
        while let byte = bytes.popFirst() {
            guard byte == 0x25 else {
                text.append(byte)
                continue
            }
            guard bytes.count >= 2, let value = UInt8(String(decoding: bytes.prefix(2), as: UTF8.self), radix: 16),
                value != 0,
                bytes.prefix(2).allSatisfy({ $0 != 0x2b && $0 != 0x2d })
            else { return nil }
            if ByteClass.isUnreserved(value) {
                text.append(value)
            } else {
                text += [0x25] + bytes.prefix(2).map { $0 >= 0x61 ? $0 - 32 : $0 }
            }
            bytes = bytes.dropFirst(2)
        }
        var segments: [[UInt8]] = []
        let parts = text.dropFirst().split(separator: 0x2f, omittingEmptySubsequences: false).map(Array.init)
        for (index, part) in parts.enumerated() {
            let isDot = part == [0x2e]
            let isDoubleDot = part == [0x2e, 0x2e]
            if isDoubleDot {
                guard segments.popLast() != nil else { return nil }
            } else if !isDot {
                segments.append(part)
            }
            if index == parts.count - 1 && (isDot || isDoubleDot) { segments.append([]) }
        }
        return "/" + segments.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
    }

    @Test(arguments: 1...60)
    func `a random path becomes what a plain reading of the RFC says, and stays so`(seed: UInt64) {
        var random = Seeded(seed)
        let pieces = [
            "/", "/", ".", "..", "/.", "/..", "a", "%2e", "%2E", "%2f", "%41", "%7e", "%25", "%00", "%", "\\", "%5c",
            "~", "%zz", "b/c",
        ]
        for _ in 0..<200 {
            let path =
                "/"
                + (0..<Int.random(in: 0...8, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
                .joined()
            let (outcome, normal) = normalise(path)
            switch outcome {
            case .same: #expect(model(path) == path, "\(path)")
            case .changed:
                #expect(model(path) == normal, "\(path)")
                let again = normalise(normal)
                #expect(again.outcome == .same || again.path == normal, "\(path)")
            case .refused: #expect(model(path) == nil, "\(path)")
            }
        }
    }

    @Test(arguments: ["/", "/.", "/a", "%2e", "/../a"])
    func `a long path costs linear time`(piece: String) {
        let path = "/a" + String(repeating: "/a", count: 1000) + String(repeating: piece, count: 100_000)
        let time = processorTime { _ = normalise(path) }
        #expect(time < .seconds(3))
    }
}
