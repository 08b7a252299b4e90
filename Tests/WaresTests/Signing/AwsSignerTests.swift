import Credentials
import FoundationEssentials
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares

/// AWS Signature Version 4 against the published test suite, and against what botocore 1.44 signs.
@Suite struct AwsSignerTests {
    private static let secret = Secret("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")

    private static func sign(
        _ signer: AwsSigner, _ request: AwsSigner.Request, _ fields: HttpFields, others: [FieldName] = [],
        at seconds: Int64, token: String? = nil
    ) throws -> String {
        let time = AwsTime(WallTime(seconds: seconds))
        var fields = fields
        try fields.set("X-Amz-Date", toRaw: time.text)
        if let token { try fields.set("X-Amz-Security-Token", to: token) }
        let keys = AwsKeys("AKIDEXAMPLE", secret, nil)
        let key = try #require(signer.key(on: time, number: 0) { keys })
        let signed = signer.sign(request, fields: fields, others: others, at: time, with: key)
        return String(decoding: signed.authorization, as: UTF8.self)
    }

    private static let emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        var method = "GET"
        var path = "/"
        var query: String?
        var fields: [(FieldName, String)] = []
        var content = ""
        var token: String?
        let signature: String

        var testDescription: String { name }
    }

    /// From the AWS Signature Version 4 test suite.
    private static let suite = [
        Case(name: "get-vanilla", signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Case(
            name: "post-vanilla", method: "POST",
            signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        Case(
            name: "get-header-value-trim", fields: [("My-Header1", "value1"), ("My-Header2", "\"a   b   c\"")],
            signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        Case(
            name: "get-header-key-duplicate",
            fields: [("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")],
            signature: "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
        Case(
            name: "get-unreserved",
            path: "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
        Case(
            name: "get-utf8", path: "/\u{1234}",
            signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
        Case(
            name: "get-vanilla-query-order-key-case", query: "Param2=value2&Param1=value1",
            signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        Case(
            name: "post-x-www-form-urlencoded", method: "POST",
            fields: [("Content-Type", "application/x-www-form-urlencoded")], content: "Param1=value1",
            signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
        Case(
            name: "get-slashes", path: "//example//",
            signature: "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
        Case(
            name: "get-relative-relative", path: "/example1/example2/../..",
            signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        Case(
            name: "with a session token",
            token:
                "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==",
            signature: "c8db8b9676d526f735dac5330f17623554c6cad1e2980d321903e9a3884c051b"),
    ]

    @Test(arguments: suite)
    func `a request of the test suite of AWS is signed as it says`(item: Case) throws {
        var fields = HttpFields()
        for (name, value) in item.fields { try fields.append(name, value) }
        let digest = Array(item.content.utf8).withUnsafeBytes { Digest256(of: $0) }.hex
        let request = AwsSigner.Request(
            method: item.method, path: Array(item.path.utf8), query: item.query.map { Array($0.utf8) },
            host: "example.amazonaws.com", payload: Array(digest.utf8))
        let authorization = try Self.sign(
            AwsSigner(region: "us-east-1", service: "service"), request, fields, others: item.fields.map(\.0),
            at: 1_440_938_160, token: item.token)
        #expect(
            authorization.hasPrefix("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, ")
        )
        #expect(authorization.hasSuffix("Signature=\(item.signature)"))
    }

    @Test func `requests are signed as botocore signs them`() throws {
        let path = #filePath.replacing("AwsSignerTests.swift", with: "Fixtures/botocore.txt")
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 60)
        for line in lines {
            let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 10 else { throw GatewayError(.gateway, .internalError, "a broken fixture") }
            var fields = HttpFields()
            for field in parts[6].split(separator: "|") {
                let pair = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let value = pair[1].drop { $0 == " " }
                try fields.append(
                    #require(FieldName(String(pair[0]))), String(value.reversed().drop { $0 == " " }.reversed()))
            }
            let digest = Array(parts[7].utf8).withUnsafeBytes { Digest256(of: $0) }.hex
            if parts[2] == "s3" { try fields.set("X-Amz-Content-Sha256", to: digest) }
            let request = AwsSigner.Request(
                method: parts[1], path: Array(parts[4].utf8), query: parts[5].isEmpty ? nil : Array(parts[5].utf8),
                host: "host.example.com", payload: Array(digest.utf8))
            let authorization = try Self.sign(
                AwsSigner(region: parts[3], service: parts[2]), request, fields, at: #require(Int64(parts[0])),
                token: parts[8].isEmpty ? nil : parts[8])
            #expect(authorization == parts[9], "\(parts[1]) \(parts[4])?\(parts[5])")
        }
    }

    /// Chunked content as the documentation of S3 signs it: *Signature Calculations: Transferring Payload in Multiple Chunks*.
    @Test func `content in chunks is signed as the documentation of S3 says`() throws {
        let signer = AwsSigner(region: "us-east-1", service: "s3")
        let time = AwsTime(WallTime(seconds: 1_369_353_600))
        let keys = AwsKeys("AKIAIOSFODNN7EXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), nil)
        let key = try #require(signer.key(on: time, number: 0) { keys })
        var fields: HttpFields = [
            "x-amz-content-sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "x-amz-decoded-content-length": "66560",
            "x-amz-storage-class": "REDUCED_REDUNDANCY", "Content-Encoding": "aws-chunked",
            "Content-Length": "66824",
        ]
        try fields.set("x-amz-date", toRaw: time.text)
        let request = AwsSigner.Request(
            method: "PUT", path: Array("/examplebucket/chunkObject.txt".utf8), query: nil, host: "s3.amazonaws.com",
            payload: Array("STREAMING-AWS4-HMAC-SHA256-PAYLOAD".utf8))
        let signed = signer.sign(
            request, fields: fields, others: [.contentEncoding, .contentLength], at: time, with: key)
        #expect(signed.signature.hex == "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9")
        let filter = AwsChunkedContent(key, time, signed.signature)
        var output: [UInt8] = []
        // In pieces of an odd size, as they may come.
        let content = [UInt8](repeating: 0x61, count: 66_560)
        for start in stride(from: 0, to: content.count, by: 7001) {
            content[start..<min(start + 7001, content.count)].withUnsafeBytes { filter.filter($0, into: &output) }
        }
        filter.finish(into: &output)
        #expect(output.count == 66_824)
        #expect(AwsChunkedContent.length(of: 66_560) == 66_824)
        let text = String(decoding: output, as: UTF8.self)
        let signatures = [
            "10000;chunk-signature=ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648\r\n",
            "400;chunk-signature=0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497\r\n",
            "0;chunk-signature=b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9\r\n\r\n",
        ]
        for signature in signatures { #expect(text.contains(signature)) }
    }

    @Test(arguments: [0, 1, 8191, 65_535, 65_536, 65_537, 200_000])
    func `the length of chunked content is known before`(count: Int) throws {
        let signer = AwsSigner(region: "a", service: "s3")
        let time = AwsTime(WallTime(seconds: 0))
        let keys = AwsKeys("A", Secret("B"), nil)
        let key = try #require(signer.key(on: time, number: 0) { keys })
        let filter = AwsChunkedContent(key, time, Digest256(of: []))
        var output: [UInt8] = []
        [UInt8](repeating: 0, count: count).withUnsafeBytes { filter.filter($0, into: &output) }
        filter.finish(into: &output)
        #expect(output.count == AwsChunkedContent.length(of: count))
        #expect(AwsChunkedContent.length(of: .max) == nil)
    }

    @Test(arguments: [
        (Int64(0), "19700101T000000Z"), (951_827_696, "20000229T123456Z"), (-1, "19691231T235959Z"),
        (4_107_542_399, "21000228T235959Z"), (1_704_067_199, "20231231T235959Z"),
    ])
    func `a moment is written as AWS writes it`(seconds: Int64, text: String) {
        #expect(String(decoding: AwsTime(WallTime(seconds: seconds)).text, as: UTF8.self) == text)
    }

    @Test func `a key is derived again for another day and for other keys`() throws {
        let signer = AwsSigner(region: "us-east-1", service: "s3")
        let keys = AwsKeys("A", Secret("B"), nil)
        let first = AwsTime(WallTime(seconds: 86_399))
        let key = try #require(signer.key(on: first, number: 1) { keys })
        #expect(signer.lastKey(on: AwsTime(WallTime(seconds: 5)), number: 1) === key)
        #expect(signer.lastKey(on: AwsTime(WallTime(seconds: 86_400)), number: 1) == nil)
        #expect(signer.lastKey(on: first, number: 2) == nil)
    }
}
