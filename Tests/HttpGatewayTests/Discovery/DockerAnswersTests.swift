import GatewayConfig
import HttpWare
import Testing

@testable import HttpGateway

/// The answers of a container engine, right and wrong.
@Suite struct DockerAnswersTests {
    private func container(_ json: String) throws -> DockerContainer? {
        DockerContainer(try JsonValue(Array(json.utf8)))
    }

    private func instance(
        _ members: String, networks: String = #"{"web": {"IPAddress": "10.0.0.2"}}"#, status: String = "Up 3 minutes",
        network: String? = nil
    ) throws -> FoundInstance {
        let container = try container(
            """
            {"Id": "ab12", "Names": ["/shop-orders-1"], "State": "running", "Status": "\(status)", "Created": 17,
             "NetworkSettings": {"Networks": \(networks)}, \(members)}
            """)
        return try #require(container).instance(network: network, onlyLabelled: true, leaving: false)
    }

    private let labels =
        #""Labels": {"httpware.route": "a.test", "com.docker.compose.service": "orders", "com.docker.compose.project": "shop"}"#

    @Test func `a compose service is a service with its project's name`() throws {
        let found = try instance(labels + #", "Ports": [{"PrivatePort": 3000, "Type": "tcp"}]"#)
        #expect(found.service == "orders-shop")
        #expect(found.place == "container shop-orders-1")
        #expect(found.addresses.map(\.description) == ["10.0.0.2:3000"])
        #expect(found.unused == nil)
    }

    @Test(arguments: [
        ("Up 3 minutes (health: starting)", "its health check has not passed yet"),
        ("Up 3 minutes (starting)", "its health check has not passed yet"),
        ("Up 3 minutes (unhealthy)", "its health check fails"),
    ])
    func `a container whose check does not pass takes no requests`(status: String, reason: String) throws {
        let found = try instance(labels + #", "Ports": [{"PrivatePort": 3000}]"#, status: status)
        #expect(found.unused == reason)
        #expect(found.addresses == [])
    }

    @Test func `a healthy one does`() throws {
        #expect(try instance(labels + #", "Ports": [{"PrivatePort": 3000}]"#, status: "Up (healthy)").unused == nil)
    }

    @Test(arguments: [
        (#""Ports": []"#, "exposes no port; write label httpware.port"),
        (#""Ports": [{"PrivatePort": 53, "Type": "udp"}]"#, "exposes no port; write label httpware.port"),
        (
            #""Ports": [{"PrivatePort": 1}, {"PrivatePort": 2}]"#,
            "exposes several ports (1, 2); write label httpware.port"
        ),
        (
            #""Ports": [{"PrivatePort": 99999}, {"PrivatePort": -1}, {"PrivatePort": "x"}]"#,
            "exposes no port; write label httpware.port"
        ),
    ])
    func `a port that is not clear`(ports: String, reason: String) throws {
        #expect(try instance("\(labels), \(ports)").unused == reason)
    }

    @Test func `networks: the only one, the named one, with the project's name in front`() throws {
        let two = #"{"shop_web": {"IPAddress": "10.0.0.2"}, "db": {"IPAddress": "10.1.0.2"}}"#
        let ports = labels + #", "Ports": [{"PrivatePort": 3000}]"#
        #expect(try instance(ports, networks: two).unused?.hasPrefix("is in several networks (db, shop_web)") == true)
        #expect(try instance(ports, networks: two, network: "db").addresses.map(\.description) == ["10.1.0.2:3000"])
        #expect(try instance(ports, networks: two, network: "web").addresses.map(\.description) == ["10.0.0.2:3000"])
        #expect(try instance(ports, networks: two, network: "other").unused == "is not in network other")
        #expect(try instance(ports, networks: #"{"web": {"IPAddress": ""}}"#).unused == "has no address in a network")
        #expect(
            try instance(ports, networks: #"{"web": {"IPAddress": "169.254.169.254"}}"#).unused
                == "169.254.169.254:3000 is the address of a cloud's metadata")
    }

    @Test(arguments: [
        "{}", "[]", "null", #"{"Id": "../../etc"}"#, #"{"Id": 5}"#, #"{"Id": ""}"#,
        #"{"Id": "ab", "Names": 7, "Labels": [1], "Ports": {"a": 1}, "NetworkSettings": {"Networks": [null]}, "Created": "x", "State": {}}"#,
    ])
    func `answers of the wrong shape make no instance, or one that is not used`(json: String) throws {
        let found = try container(json)?.instance(network: nil, onlyLabelled: true, leaving: false)
        #expect(found?.addresses ?? [] == [])
    }

    @Test func `a one-off container of compose is left alone`() throws {
        let found = try instance(
            #""Labels": {"httpware.route": "a.test", "com.docker.compose.oneoff": "True"}, "Ports": [{"PrivatePort": 80}]"#
        )
        #expect(found.isIgnored)
    }

    @Test func `an event tells that a container is stopping`() {
        func stopping(_ json: String) -> String? { DockerEvent(Array(json.utf8)).stopping }
        #expect(stopping(#"{"Action": "kill", "Actor": {"ID": "ab", "Attributes": {"signal": "15"}}}"#) == "ab")
        #expect(stopping(#"{"status": "kill", "id": "ab"}"#) == "ab")
        #expect(stopping(#"{"Action": "kill", "Actor": {"ID": "ab", "Attributes": {"signal": "1"}}}"#) == nil)
        #expect(stopping(#"{"Action": "start", "Actor": {"ID": "ab"}}"#) == nil)
        #expect(DockerEvent(Array(#"{"Action": "start", "Actor": {"ID": "ab"}}"#.utf8)).changed == "ab")
        #expect(stopping("not json") == nil)
        #expect(stopping(#"{"Action": "kill", "Actor": {"ID": "../x"}}"#) == nil)
    }
}
