import Testing

@testable import HttpGateway

@Suite struct PortHolderTests {
    @Test func `the sockets that listen on a port are found in the system's table`() {
        let lines = [
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode",
            "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0",
            "   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1",
            "   2: 00000000000000000000000000000000:0050 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 4713 1",
            "broken", "   3: nothing 0 0A",
        ]
        #expect(PortHolder.inodes(lines: lines, 8080) == ["4711"])
        #expect(PortHolder.inodes(lines: lines, 80) == ["4713"])
        #expect(PortHolder.inodes(lines: lines, 50000).isEmpty)
    }
}
