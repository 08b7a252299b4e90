#if HTTPWARE_BENCH
    @testable import HttpWare

    private let requestHead = bytes(
        "GET /articles/2026/11/proxies?page=2&sort=newest HTTP/1.1", "Host: www.example.com",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "Accept-Language: en-US,en;q=0.5",
        "Accept-Encoding: gzip, deflate", "Connection: keep-alive", "Referer: http://www.example.com/articles",
        "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark", "Upgrade-Insecure-Requests: 1",
        "Cache-Control: max-age=0")

    private let responseHead = bytes(
        "HTTP/1.1 200 OK", "Server: nginx/1.22.1", "Date: Sat, 21 Nov 2026 09:00:00 GMT",
        "Content-Type: text/html; charset=utf-8",
        "Content-Length: 1024", "Last-Modified: Fri, 20 Nov 2026 08:00:00 GMT", "Connection: keep-alive",
        "ETag: \"655b1f80-400\"", "Cache-Control: public, max-age=3600", "Accept-Ranges: bytes", "Vary: Accept-Encoding"
    )

    private let longHead = bytes(
        lines: ["GET / HTTP/1.1", "Host: www.example.com"] + (0..<98).map { "X-Some-Field-\($0): its value \($0)" })

    private let chunked = [UInt8](
        (0..<16).flatMap { _ in Array("1000\r\n".utf8) + [UInt8](repeating: 0x61, count: 4096) + [0x0d, 0x0a] }
            + Array("0\r\n\r\n".utf8))

    private let smallChunks = [UInt8](
        (0..<4096).flatMap { _ in Array("10\r\n0123456789abcdef\r\n".utf8) } + Array("0\r\n\r\n".utf8))

    private let plainPath = Array("/articles/2026/11/proxies-that-keep-tokens-alive".utf8)
    private let oddPath = Array("/articles/%7Ejoe/./drafts/../2026/%e4%b8%ad/index.html".utf8)

    private func bytes(_ lines: String...) -> [UInt8] { bytes(lines: lines) }
    private func bytes(lines: [String]) -> [UInt8] { Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) }

    let codecBenchmarks: [Benchmark] = [
        Benchmark(name: "a browser's request head is decoded") { decodeRequest(requestHead, $0) },
        Benchmark(name: "an origin server's response head is decoded") { times in
            var response = HttpResponse(.ok)
            for _ in 0..<times {
                response.reset()
                var decoder = ResponseHeadDecoder()
                keep(try? decoder.decode(responseHead.span.bytes, into: &response, method: .get, limits: .response))
            }
        },
        Benchmark(name: "a request head of 100 fields is decoded") { decodeRequest(longHead, $0) },
        Benchmark(name: "a browser's request head is encoded") { times in
            var request = HttpRequest()
            var decoder = RequestHeadDecoder()
            _ = try? decoder.decode(requestHead.span.bytes, into: &request, limits: HeadLimits(), isReverse: true)
            var options = HeadEncoder.RequestOptions()
            options.via = .http11
            encode(times) { $0.write(&request, options) }
        },
        Benchmark(name: "an origin server's response head is encoded") { times in
            var response = HttpResponse(.ok)
            var decoder = ResponseHeadDecoder()
            _ = try? decoder.decode(responseHead.span.bytes, into: &response, method: .get, limits: .response)
            var options = HeadEncoder.ResponseOptions()
            options.framing = .length(1024)
            options.via = .http11
            encode(times) { $0.write(&response, options) }
        },
        Benchmark(name: "64 KiB in chunks of 4 KiB are decoded") { decodeChunks(chunked, $0) },
        Benchmark(name: "64 KiB in chunks of 16 bytes are decoded") { decodeChunks(smallChunks, $0) },
        Benchmark(name: "a normal path is seen to be one") { normalise(plainPath, $0) },
        Benchmark(name: "a path with dots and percent signs is normalised") { normalise(oddPath, $0) },
    ]

    private func decodeRequest(_ head: [UInt8], _ times: Int) {
        var request = HttpRequest()
        let limits = HeadLimits()
        for _ in 0..<times {
            request.reset()
            var decoder = RequestHeadDecoder()
            keep(try? decoder.decode(head.span.bytes, into: &request, limits: limits, isReverse: true))
        }
    }

    private func encode(_ times: Int, _ write: (inout HeadEncoder) -> Void) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { buffer.deallocate() }
        for _ in 0..<times {
            var encoder = HeadEncoder(buffer)
            write(&encoder)
            keep(encoder.count)
        }
    }

    private func decodeChunks(_ bytes: [UInt8], _ times: Int) {
        for _ in 0..<times {
            var decoder = ChunkedDecoder(limits: HeadLimits())
            var position = 0
            var total = 0
            while case .content(let range) = try? decoder.next(bytes.span.bytes, from: &position) {
                total += range.count
            }
            keep(total)
        }
    }

    private func normalise(_ path: [UInt8], _ times: Int) {
        var output: [UInt8] = []
        for _ in 0..<times {
            output.removeAll(keepingCapacity: true)
            path.withUnsafeBufferPointer { keep(NormalPath.normalise($0, into: &output)) }
        }
    }
#endif
