import Capturing
import HttpWare
import Testing

/// Archives with the traits of archives that Chromium 156 and Firefox 153 write.
@Suite struct BrowserHarTests {
    private func read(_ text: String) throws -> HarReader { try HarReader(Array(text.utf8)) }

    @Test func `an archive of Chromium is read with its messages and without warnings`() throws {
        let reader = try read(
            #"""
            {"log":{"version":"1.2","creator":{"name":"WebInspector","version":"537.36"},"pages":[{"startedDateTime":"2026-11-23T14:07:09.705Z",
            "id":"page_1","title":"http://a.test/","pageTimings":{"onContentLoad":164.86799999984214,"onLoad":166.0859999974491}}],"entries":[
            {"_connectionId":"11","_initiator":{"type":"script","stack":{"callFrames":[{"functionName":"go","scriptId":"5","lineNumber":4}]}},
            "_priority":"High","_resourceType":"fetch","cache":{},"connection":"8777","pageref":"page_1","request":{"method":"POST",
            "url":"http://a.test/multi","httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type",
            "value":"multipart/form-data; boundary=----WebKitFormBoundary1y"},{"name":"Content-Length","value":"296"}],"queryString":[],
            "cookies":[{"name":"a","value":"1","path":"","domain":"","expires":"1969-12-31T23:59:59.000Z","httpOnly":false,"secure":false}],
            "headersSize":655,"bodySize":296,"postData":{"mimeType":"multipart/form-data; boundary=----WebKitFormBoundary1y",
            "text":"------WebKitFormBoundary1y\r\nContent-Disposition: form-data; name=\"field\"\r\n\r\n\u0000\ufffd\r\n------WebKitFormBoundary1y--\r\n",
            "params":[{"name":"field","value":"(binary)"}]}},"response":{"status":201,"statusText":"Created","httpVersion":"HTTP/1.1",
            "headers":[{"name":"Content-Encoding","value":"gzip"}],"cookies":[],"content":{"size":11,"mimeType":"application/json",
            "compression":-9,"text":"{\"ok\":true}"},"redirectURL":"","headersSize":149,"bodySize":20,"_transferSize":169,"_error":null,
            "_fetchedViaServiceWorker":false},"serverIPAddress":"127.0.0.1","startedDateTime":"2026-11-23T14:07:09.955Z","time":61.028,
            "timings":{"blocked":7.147,"dns":-1,"ssl":-1,"connect":-1,"send":5.672,"wait":5.374,"receive":42.834,"_blocked_queueing":1.575,
            "_workerStart":-1,"_workerReady":-1,"_workerFetchStart":-1,"_workerRespondWithSettled":-1}},
            {"_fromCache":"disk","_resourceType":"stylesheet","request":{"method":"GET","url":"http://a.test/s.css","httpVersion":"h3",
            "headers":[{"name":":authority","value":"a.test"}],"queryString":[],"cookies":[],"headersSize":-1,"bodySize":0},"response":
            {"status":200,"statusText":"","httpVersion":"h3","headers":[],"cookies":[],"content":{"size":3,"mimeType":"text/css","text":"b{}"},
            "redirectURL":"","headersSize":-1,"bodySize":0,"_transferSize":0},"startedDateTime":"2026-11-23T14:07:10Z","time":1,"timings":
            {"blocked":16.19,"dns":-1,"ssl":-1,"connect":-1,"send":0,"wait":8.17,"receive":1.487,"_blocked_queueing":16}},
            {"_resourceType":"fetch","request":{"method":"GET","url":"http://a.test:9/","httpVersion":"","headers":[],"queryString":[],
            "cookies":[],"headersSize":-1,"bodySize":0},"response":{"status":0,"statusText":"","httpVersion":"","headers":[],"cookies":[],
            "content":{"size":0,"mimeType":"x-unknown"},"redirectURL":"","headersSize":-1,"bodySize":-1,"_transferSize":0,
            "_error":"net::ERR_UNSAFE_PORT"},"serverIPAddress":"","startedDateTime":"2026-11-23T14:07:10Z","time":17.1,"timings":
            {"blocked":17.1,"dns":-1,"ssl":-1,"connect":-1,"send":0,"wait":0,"receive":0,"_blocked_queueing":-1}},
            {"_resourceType":"websocket","_priority":null,"_webSocketMessages":[{"type":"send","time":1795442830.1695008,"opcode":1,
            "data":"hello"},{"type":"send","time":1795442830.1696198,"opcode":2,"data":"AQID"},{"type":"receive","time":1795442830.187769,
            "opcode":1,"data":"world"}],"request":{"method":"GET","url":"ws://a.test/ws","httpVersion":"HTTP/1.1","headers":[],
            "queryString":[],"cookies":[],"headersSize":546,"bodySize":0},"response":{"status":101,"statusText":"Switching Protocols",
            "httpVersion":"HTTP/1.1","headers":[],"cookies":[],"content":{"size":0,"mimeType":"x-unknown","compression":129},
            "redirectURL":"","headersSize":129,"bodySize":-129},"startedDateTime":"2026-11-23T14:07:10.168Z","time":490.98,"timings":
            {"blocked":-1,"dns":-1,"ssl":-1,"connect":-1,"send":0,"wait":19.259,"receive":471.722,"_blocked_queueing":-1}},
            {"_resourceType":"eventsource","_eventSourceMessages":[{"time":1795442830.1886098,"eventName":"message","eventId":"1","data":"one"},
            {"time":1795442830.2,"eventName":"tick","eventId":"","data":"two"}],"request":{"method":"GET","url":"http://a.test/sse",
            "httpVersion":"HTTP/1.1","headers":[],"queryString":[],"cookies":[],"headersSize":572,"bodySize":0},"response":{"status":200,
            "statusText":"OK","httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"text/event-stream"}],"cookies":[],
            "content":{"size":17,"mimeType":"text/event-stream","compression":17},"redirectURL":"","headersSize":144,"bodySize":0,
            "_transferSize":144,"_error":"net::ERR_ABORTED"},"startedDateTime":"2026-11-23T14:07:10.168Z","time":20.3,"timings":
            {"blocked":2,"dns":-1,"ssl":-1,"connect":-1,"send":0.1,"wait":14.1,"receive":4.1,"_blocked_queueing":1.7}}]}}
            """#)
        #expect(reader.warnings.isEmpty && reader.exchanges.count == 5)
        let posted = reader.exchanges[0]
        #expect(
            posted.server == "127.0.0.1:8777" && posted.duration == 61_027_000
                && posted.request.content.isDecoded == false)
        #expect(posted.request.content.kept.starts(with: Array("------WebKit".utf8)))
        #expect(posted.response.map { DecodedContent($0).bytes } == Array(#"{"ok":true}"#.utf8))
        #expect(reader.exchanges[1].version == "HTTP/3" && reader.exchanges[1].request.fields.isEmpty)
        #expect(reader.exchanges[2].fault == "net::ERR_UNSAFE_PORT" && reader.exchanges[2].response == nil)
        let socket = reader.exchanges[3]
        #expect(socket.kind == .websocket && socket.url == "http://a.test/ws" && socket.response?.content.size == 0)
        #expect(socket.messages.map(\.data) == [Array("hello".utf8), [1, 2, 3], Array("world".utf8)])
        let events = reader.exchanges[4]
        #expect(events.kind == .sse && events.fault == "net::ERR_ABORTED")
        #expect(events.messages.map(\.form) == [.event(type: nil, id: "1"), .event(type: "tick", id: nil)])
    }

    @Test func `an archive of Firefox is read with the bytes and the sizes of contents`() throws {
        let reader = try read(
            #"""
            {"log":{"version":"1.2","creator":{"name":"Firefox","version":"153.7.0"},"browser":{"name":"Firefox","version":"153.7.0"},
            "pages":[{"startedDateTime":"2026-11-23T14:04:10.299+00:00","id":"page_1","title":"","pageTimings":{"onContentLoad":-1,
            "onLoad":1250}}],"entries":[
            {"startedDateTime":"2026-11-23T14:04:12.370+00:00","request":{"bodySize":77,"method":"POST","url":"http://a.test/multi",
            "httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"multipart/form-data; boundary=----gecko2"}],"cookies":[],
            "queryString":[],"headersSize":545,"postData":{"mimeType":"multipart/form-data; boundary=----gecko2","params":[],
            "text":"------gecko2\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n\u0000\u00ff\u0001\r\n------gecko2--"}},
            "response":{"status":201,"statusText":"Created","httpVersion":"HTTP/1.1","headers":[{"name":"Set-Cookie","value":"sid=1; HttpOnly"},
            {"name":"Set-Cookie","value":"two=2"}],"cookies":[{"name":"sid","value":"1"}],"content":{"mimeType":"application/json","size":11,
            "text":"{\"ok\":true}"},"redirectURL":"","headersSize":149,"bodySize":160},"cache":{},"timings":{"blocked":-1,"dns":0,"connect":0,
            "ssl":0,"send":0,"wait":1,"receive":0},"time":1,"pageref":"page_1"},
            {"startedDateTime":"2026-11-23T14:04:12.716+00:00","request":{"bodySize":0,"method":"GET","url":"http://a.test/redirect",
            "httpVersion":"HTTP/1.1","headers":[],"cookies":[],"queryString":[],"headersSize":395},"response":{"status":302,
            "statusText":"Found","httpVersion":"HTTP/1.1","headers":[{"name":"Location","value":"/gzip"}],"cookies":[],
            "content":{"mimeType":"text/plain","size":0},"redirectURL":"/gzip","headersSize":179,"bodySize":179},"cache":{},
            "timings":{"blocked":-1,"dns":0,"connect":0,"ssl":0,"send":0,"wait":6,"receive":0},"time":6,"pageref":"page_1"},
            {"startedDateTime":"2026-11-23T14:04:13.167+00:00","request":{"bodySize":0,"method":"GET","url":"http://a.test:9/refused",
            "httpVersion":"","headers":[{"name":"Host","value":"a.test:9"}],"cookies":[],"queryString":[],"headersSize":0},"response":
            {"status":0,"statusText":"","httpVersion":"","headers":[],"cookies":[],"content":{"text":""},"redirectURL":"","headersSize":0,
            "bodySize":-1},"cache":{},"timings":{},"time":0,"pageref":"page_1"},
            {"startedDateTime":"2026-11-23T14:04:13.641+00:00","request":{"bodySize":0,"method":"GET","url":"wss://a.test/ws",
            "httpVersion":"HTTP/1.1","headers":[{"name":"Sec-WebSocket-Key","value":"ZAUF4DEGNy3Gg+CTKvaCQA=="}],"cookies":[],
            "queryString":[],"headersSize":555},"response":{"status":101,"statusText":"Switching Protocols","httpVersion":"HTTP/1.1",
            "headers":[],"cookies":[],"content":{"mimeType":"text/plain","size":0,"text":""},"redirectURL":"","headersSize":129,
            "bodySize":129},"cache":{},"timings":{"blocked":-1,"dns":0,"connect":0,"ssl":0,"send":0,"wait":5,"receive":0},"time":5}]}}
            """#)
        #expect(reader.warnings.isEmpty && reader.exchanges.count == 4)
        let posted = reader.exchanges[0]
        #expect(posted.request.content.kept.count == 77 && posted.request.content.kept.contains(0xff))
        #expect(posted.response?.values(of: "set-cookie") == ["sid=1; HttpOnly", "two=2"])
        #expect(posted.started.rfc3339 == "2026-11-23T14:04:12.370000Z")
        #expect(reader.exchanges[1].response?.content.size == 0)
        #expect(reader.exchanges[2].status == nil && reader.exchanges[2].fault == "no response")
        #expect(reader.exchanges[3].kind == .websocket && reader.exchanges[3].url == "https://a.test/ws")
    }
}
