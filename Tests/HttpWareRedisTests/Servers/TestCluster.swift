import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// A real cluster of masters without replicas, each with its part of the slots.
final class TestCluster: Sendable {
    let nodes: [TestRedis]

    /// Waits until each node knows all slots.
    init(_ count: Int = 3) async throws {
        nodes = try (0..<count).map { _ in try TestRedis.node() }
        let size = RedisSlot.count / count
        for (index, node) in nodes.enumerated() {
            let last = index == count - 1 ? RedisSlot.count - 1 : (index + 1) * size - 1
            try await ask(node, ["CLUSTER", "ADDSLOTSRANGE", RedisArgument(index * size), RedisArgument(last)])
            try await meet(node)
        }
        try await settle()
    }

    /// Makes the first node know another one.
    private func meet(_ node: TestRedis) async throws {
        guard node.port != nodes[0].port, let bus = node.busPort else { return }
        let port = RedisArgument(Int(node.port))
        try await ask(nodes[0], ["CLUSTER", "MEET", "127.0.0.1", port, RedisArgument(Int(bus))])
    }

    /// Asks one node, whatever the key is.
    @discardableResult
    func ask(_ node: TestRedis, _ command: [RedisArgument]) async throws -> RedisReply {
        var definition = try node.definition
        definition.timeout = .seconds(5)
        let client = RedisClient(definition)
        defer { client.close() }
        return try await client.command(command)
    }

    /// The node with the slot of a key at first, and another one.
    func nodes(of key: String) -> (owner: TestRedis, other: TestRedis) {
        let index = min(Int(RedisSlot.of(Array(key.utf8))) / (RedisSlot.count / nodes.count), nodes.count - 1)
        return (nodes[index], nodes[(index + 1) % nodes.count])
    }

    func id(_ node: TestRedis) async throws -> RedisArgument {
        RedisArgument(try #require(try await ask(node, ["CLUSTER", "MYID"]).bytes))
    }

    private func settle() async throws {
        for node in nodes {
            try await eventually {
                let info = try await ask(node, ["CLUSTER", "INFO"]).bytes ?? []
                let slots = try await ask(node, ["CLUSTER", "SLOTS"]).array?.count
                return String(decoding: info, as: UTF8.self).contains("cluster_state:ok") && slots == nodes.count
            }
        }
    }

    /// A definition that knows some of the nodes.
    func definition(_ known: Int = 1) throws -> RedisDefinition {
        let addresses = try nodes.prefix(known).map { try RedisAddress(optionText: "127.0.0.1:\($0.port)") }
        return RedisDefinition(.nodes(addresses), timeout: .seconds(2))
    }
}
