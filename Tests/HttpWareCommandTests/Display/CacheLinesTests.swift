import Foundation
import Testing

@testable import HttpWareCommand

@Suite struct CacheLinesTests {
    private func decoded<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }

    @Test func `stores and routes stand in columns`() throws {
        let overview = try decoded(
            CacheOverview.self,
            """
            {"stores":[{"name":"memory","kind":"memory","responses":12,"bytes":35000,"limit":268435456,"evicted":3,"at":"x"}],
             "routes":[{"listener":"web","route":"api","service":null,"requests":7,"hits":3,"hitRatio":0.429,
                        "results":{"hit":3,"stale":0,"collapsed":0,"validated":1,"miss":3,"bypass":0}}]}
            """)
        #expect(
            overview.lines == [
                "STORE   KIND    RESPONSES  SIZE    LIMIT    EVICTED",
                "memory  memory  12         34 KiB  256 MiB  3",
                "",
                "LISTENER  ROUTE  SERVICE  REQUESTS  HIT  STALE  COLLAPSED  VALIDATED  MISS  BYPASS  HITS",
                "web       api    -        7         3    0      0          1          3     0       42.9%",
            ])
    }

    @Test(arguments: [
        (#""connections":2,"subscribed":true,"fault":null"#, "answers"),
        (#""connections":1,"subscribed":false,"fault":null"#, "answers, but does not report changes"),
        (#""connections":0,"subscribed":false,"fault":null"#, "not asked yet"),
        (
            #""connections":1,"subscribed":true,"fault":"it closed the connection\u001b[2J""#,
            "it closed the connection?[2J"
        ),
    ])
    func `how a store's Redis server does stands below the table`(fields: String, words: String) throws {
        let overview = try decoded(
            CacheOverview.self,
            """
            {"stores":[{"name":"pages","kind":"redis","responses":1,"bytes":1024,"limit":16777216,"evicted":0,
             "redis":{\(fields),"commands":70,"failures":3}}],"routes":[]}
            """)
        #expect(
            overview.lines == [
                "STORE  KIND   RESPONSES  SIZE     LIMIT   EVICTED", "pages  redis  1          1.0 KiB  16 MiB  0",
                "pages: Redis \(words); 70 commands, 3 failed",
            ])
    }

    @Test func `entries of several stores are one table, and nothing in them moves the cursor`() throws {
        let lists = try ["one", "two"].map { store in
            try decoded(
                CacheList.self,
                """
                {"store":"\(store)","more":false,"entries":[{"key":"http://a/\\u001b[2J","identity":"0123","status":200,
                "size":null,"age":1,"ttl":-4,"range":"bytes 0-1/9","vary":["Accept"],"tags":[]}]}
                """)
        }
        #expect(
            TextTable.lines(CacheList.rows(lists)) == [
                "STORE  STATUS  SIZE  AGE  TTL    VARY    TAGS  KEY",
                "one    200     -     1s   stale  Accept  -     http://a/?[2J (bytes 0-1/9) (of 0123)",
                "two    200     -     1s   stale  Accept  -     http://a/?[2J (bytes 0-1/9) (of 0123)",
            ])
    }

    @Test func `all about a response is told, line by line`() throws {
        let entry = try decoded(
            CacheEntry.self,
            """
            {"store":"memory","key":"http://a/","responses":[{"key":"http://a/","status":206,"size":2048,"age":5,"ttl":55,
            "range":"bytes 0-1/9","vary":["Accept","X"],"tags":["t"],"received":"R","date":"D","lifetime":60,"heuristic":true,
            "staleWhileRevalidate":30,"staleIfError":null,"alwaysValidated":false,"neverStale":true,
            "fields":[{"name":"Set-Cookie","value":"…"}]}]}
            """)
        #expect(
            entry.lines == [
                "http://a/ in memory", "", "  status 206, 2.0 KiB, age 5s, fresh for 55s",
                "  received R, lifetime 60s (guessed)", "  a part: bytes 0-1/9", "  varies by Accept, X", "  tags t",
                "  stale while revalidated 30s", "  never used stale", "    Set-Cookie: …",
            ])
    }
}
