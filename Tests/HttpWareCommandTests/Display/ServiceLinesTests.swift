import Foundation
import Testing

@testable import HttpWareCommand

@Suite struct ServiceLinesTests {
    private func table(_ text: String) throws -> [String] {
        ServiceLines.table(try JSONDecoder().decode([ServiceLines].self, from: Data(text.utf8)))
    }

    private func address(
        _ name: String, _ state: String, requests: Int = 0, ejectedFor: Int? = nil, failure: (String, Int)? = nil
    ) -> String {
        let last = failure.map { #"{"what":"\#($0.0)","agoMilliseconds":\#($0.1)}"# } ?? "null"
        return """
            {"address":"\(name)","state":"\(state)","requests":\(requests),"ejections":0,"checks":{"passed":0,"failed":0},
             "ejectedForMilliseconds":\(ejectedFor.map(String.init) ?? "null"),"lastFailure":\(last)}
            """
    }

    private func service(_ name: String, down: Bool = false, _ endpoints: (url: String, weight: Int, [String])...)
        -> String
    {
        let list = endpoints.map { url, weight, addresses in
            """
            {"url":"\(url)","weight":\(weight),"at":"x","connections":{"open":5,"idle":2,"requestsWaiting":4},
             "addresses":[\(addresses.joined(separator: ","))]}
            """
        }
        return
            #"{"name":"\#(name)","at":"x","balance":"hash","down":\#(down),"circuit":null,"retries":null,"endpoints":[\#(list.joined(separator: ","))]}"#
    }

    @Test func `each address of each endpoint is a line, with its state, and what failed last and when`() throws {
        let api = service(
            "api", ("http://192.0.2.1:4001", 2, [address("192.0.2.1:4001", "open", requests: 7)]),
            (
                "http://192.0.2.2:4002", 1,
                [address("192.0.2.2:4002", "ejected", ejectedFor: 8_400, failure: ("connection_refused", 1_600))]
            ),
            (
                "http://a.test:80", 1,
                [
                    address("192.0.2.3:80", "warming", failure: ("check: status 500", 200_000)),
                    address("192.0.2.4:80", "draining", requests: 1, failure: ("status 503", 7_500_000)),
                ]
            ))
        #expect(
            try table("[\(api)]") == [
                "SERVICE  ENDPOINT                          STATE           ACTIVE  WAITING  WEIGHT  LAST FAILURE",
                "api      http://192.0.2.1:4001             open            7       4        2       -",
                "api      http://192.0.2.2:4002             ejected for 8s  0       4        1       connection_refused, 1s ago",
                "api      http://a.test:80 at 192.0.2.3:80  warming         0       4        1       check: status 500, 3m20s ago",
                "api      http://a.test:80 at 192.0.2.4:80  draining        1       -        1       status 503, 2h5m ago",
            ])
    }

    @Test func `an endpoint that no monitor follows is open or down, and busy as its connections are`() throws {
        let services = [
            service("alone", ("http://a.test", 1, [])), service("gone", down: true, ("http://b.test", 1, [])),
        ]
        #expect(
            try table("[\(services.joined(separator: ","))]") == [
                "SERVICE  ENDPOINT       STATE  ACTIVE  WAITING  WEIGHT  LAST FAILURE",
                "alone    http://a.test  open   3       4        1       -",
                "gone     http://b.test  down   3       4        1       -",
            ])
    }

    @Test func `without services there is the head only, and nothing in them moves the cursor`() throws {
        #expect(try table("[]") == ["SERVICE  ENDPOINT  STATE  ACTIVE  WAITING  WEIGHT  LAST FAILURE"])
        let lines = try table("[\(service("\\u001b[2J", ("http://a.test", 1, [])))]")
        #expect(!lines.joined().contains("\u{1b}"))
    }
}
