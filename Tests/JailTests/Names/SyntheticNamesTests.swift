import HttpWare
import Testing

@testable import Jail

@Suite struct SyntheticNamesTests {
    private func host(_ names: SyntheticNames, _ address: IPAddress) -> String? {
        names.destination(address, port: 443)?.host
    }

    @Test func `a name has the same addresses each time, of both families, which lead back to it`() {
        let names = SyntheticNames()
        let (four, six) = names.addresses(of: "a.test")
        #expect(names.addresses(of: "a.test") == (four, six))
        #expect(four.isIPv4 && !six.isIPv4 && names.count == 1)
        #expect(host(names, four) == "a.test" && host(names, six) == "a.test")
        #expect(names.addresses(of: "b.test").0 != four)
        #expect(names.destination(four, port: 80) == DirectDestination(name: "a.test", port: 80))
        let mapped = IPAddress(ipv6: 0, 0xffff_0000_0000 | four.low)
        #expect(host(names, mapped) == "a.test")
    }

    @Test func `an address that stands for no name is itself, unless it is this machine's`() throws {
        let names = SyntheticNames()
        let address = try #require(IPAddress("192.0.2.1"))
        #expect(names.destination(address, port: 80) == DirectDestination(address: address, port: 80))
        for text in [
            "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::", "198.18.1.0", "198.19.255.255", "::ffff:127.0.0.1",
        ] {
            #expect(host(names, try #require(IPAddress(text))) == nil, "\(text)")
        }
    }

    @Test func `beyond the capacity, the name that was not used gives way, and its address leads nowhere`() {
        let names = SyntheticNames(capacity: 3)
        let first = ["a", "b", "c"].map { names.addresses(of: $0).0 }
        _ = names.addresses(of: "d")
        #expect(names.count == 3)
        let kept = first.compactMap { host(names, $0) }
        #expect(kept.count == 2)
        // A used name stays.
        for _ in 0..<20 {
            _ = host(names, first[1])
            _ = names.addresses(of: "\(kept.count)x")
        }
        #expect(host(names, first[1]) == "b")
    }

    @Test func `10,000 names keep only the capacity, and no address is given again soon`() {
        let names = SyntheticNames(capacity: 100)
        var seen: Set<IPAddress> = []
        for number in 0..<10_000 { seen.insert(names.addresses(of: "n\(number).test").0) }
        #expect(names.count == 100 && seen.count == 10_000)
        #expect(host(names, names.addresses(of: "n9999.test").1) == "n9999.test")
    }

    @Test func `the numbers begin again at their end, without those in use`() {
        let names = SyntheticNames(capacity: 2)
        let kept = names.addresses(of: "kept").0
        for number in 0...(Int(SyntheticNames.most) + 5) {
            _ = host(names, kept)
            let other = names.addresses(of: "n\(number)").0
            guard other != kept else {
                Issue.record("the address was given twice")
                return
            }
        }
        #expect(host(names, kept) == "kept")
    }
}
