public import HttpWare
import Synchronization

/// The addresses that stand for the names of one run: a name that a program looks up gets one address of each family, by which a connection is
/// recognized later. Safe to use from any thread.
///
/// At most `capacity` names are kept; then a name that was not used for long gives way. Its addresses are not given to another name for a long
/// time, so that a program that remembers them is refused, and does not reach another host.
public final class SyntheticNames: Sendable {
    /// The number of names that are kept. A name takes at most 1 KiB.
    public static let usualCapacity = 8192

    /// The addresses of the machine itself: those of the loopback that are not 127.0.0.1 or `::1`.
    static let own4: [UInt8] = [198, 18, 0, 1]
    static let own6: [UInt8] = [0xfd, 0x68, 0x74, 0x74, 0x70, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    /// 198.18.0.0/15 is for tests of networks, so that no host has such an address. RFC 2544 §C.2.2
    private static let first4: UInt32 = 0xc612_0100
    /// A unique local prefix. RFC 4193 §3.1
    private static let prefix6: UInt64 = 0xfd68_7474_7077_0000
    private static let first6: UInt64 = 0x1_0000
    /// The number of addresses of each family.
    static let most: UInt32 = 130_000

    fileprivate struct Slot {
        var name: String
        var number: UInt32
        /// Whether the name was used since the hand came by last.
        var isUsed = false
    }

    fileprivate struct Table {
        var slots: [Slot] = []
        var slotOfName: [String: Int] = [:]
        var slotOfNumber: [UInt32: Int] = [:]
        /// The slot that gives way next, unless it was used.
        var hand = 0
        var nextNumber: UInt32 = 0
    }

    private let capacity: Int
    private let table = Mutex(Table())

    /// Makes a pool for at least one name.
    public init(capacity: Int = SyntheticNames.usualCapacity) {
        self.capacity = min(max(capacity, 1), Int(SyntheticNames.most) / 2)
    }

    /// The number of names that are kept.
    var count: Int { table.withLock { $0.slots.count } }

    /// The addresses of a name in lower case, without a trailing dot.
    func addresses(of name: String) -> (IPAddress, IPAddress) {
        let number = table.withLock { $0.number(of: name, capacity) }
        return (
            IPAddress(ipv4: SyntheticNames.first4 + number),
            IPAddress(ipv6: SyntheticNames.prefix6, SyntheticNames.first6 + UInt64(number))
        )
    }

    /// The host that a program means with an address; `nil` if it means none, or a name that is not kept any more, or this machine.
    public func destination(_ address: IPAddress, port: UInt16) -> DirectDestination? {
        let address = address.unmapped
        if let number = SyntheticNames.number(of: address) {
            guard let name = table.withLock({ $0.name(of: number) }) else { return nil }
            return DirectDestination(name: name, port: port)
        }
        guard !address.isLoopback, !address.isUnspecified, !SyntheticNames.isOwn(address) else { return nil }
        return DirectDestination(address: address, port: port)
    }

    private static func isOwn(_ address: IPAddress) -> Bool {
        address.ipv4Bits.map { $0 >> 17 == first4 >> 17 } ?? (address.high == prefix6)
    }

    private static func number(of address: IPAddress) -> UInt32? {
        if let bits = address.ipv4Bits {
            return bits >= first4 && bits - first4 < most ? bits - first4 : nil
        }
        guard address.high == prefix6, address.low >= first6, address.low - first6 < UInt64(most) else { return nil }
        return UInt32(address.low - first6)
    }
}

extension SyntheticNames.Table {
    fileprivate mutating func name(of number: UInt32) -> String? {
        guard let slot = slotOfNumber[number] else { return nil }
        slots[slot].isUsed = true
        return slots[slot].name
    }

    fileprivate mutating func number(of name: String, _ capacity: Int) -> UInt32 {
        if let slot = slotOfName[name] {
            slots[slot].isUsed = true
            return slots[slot].number
        }
        let number = freeNumber()
        let slot = freeSlot(capacity)
        if slot == slots.count {
            slots.append(SyntheticNames.Slot(name: name, number: number))
        } else {
            slotOfName[slots[slot].name] = nil
            slotOfNumber[slots[slot].number] = nil
            slots[slot] = SyntheticNames.Slot(name: name, number: number)
        }
        slotOfName[name] = slot
        slotOfNumber[number] = slot
        return number
    }

    /// The number that was not used for the longest time. At most half of the numbers are in use.
    private mutating func freeNumber() -> UInt32 {
        while true {
            let number = nextNumber
            nextNumber = (nextNumber + 1) % SyntheticNames.most
            if slotOfNumber[number] == nil { return number }
        }
    }

    /// The slot of a name that was not used since the hand came by; the hand comes by each slot at most twice.
    private mutating func freeSlot(_ capacity: Int) -> Int {
        if slots.count < capacity { return slots.count }
        while slots[hand].isUsed {
            slots[hand].isUsed = false
            hand = (hand + 1) % slots.count
        }
        defer { hand = (hand + 1) % slots.count }
        return hand
    }
}
