import CJailShims
import Glibc
import HttpWare

/// Answers the DNS queries of a program behind a wall, at every address of its namespace. Used on its loop's thread only.
final class NameServer: SocketEventHandler {
    private let answers: NameAnswers
    private let datagrams: SocketEvents
    private let streams: NameStreams
    private var buffer = [UInt8](repeating: 0, count: longest)

    /// The maximum length of a query; longer ones are cut off, and so malformed.
    private static let longest = 1500
    /// The number of queries that one event answers, so that others get their turn.
    private static let share = 32

    /// Takes over the listening descriptors: of datagrams, and of connections.
    init(_ answers: NameAnswers, loop: EventLoop, datagrams: Int32, streams: Int32) {
        self.answers = answers
        self.datagrams = SocketEvents(loop: loop, descriptor: datagrams)
        self.streams = NameStreams(answers, loop: loop, descriptor: streams)
        self.datagrams.handler = self
        self.datagrams.enableReading()
    }

    func socketReadable() {
        for _ in 0..<NameServer.share {
            var client = sockaddr_in6()
            var local = in6_addr()
            let count = buffer.withUnsafeMutableBytes {
                cjail_receive(datagrams.descriptor, $0.baseAddress, $0.count, &client, &local)
            }
            guard count >= 0 else { return }
            guard let response = answers.response(to: Array(buffer.prefix(count))) else { continue }
            // If the socket takes none, the program asks again.
            _ = response.withUnsafeBytes {
                cjail_send(datagrams.descriptor, $0.baseAddress, $0.count, &client, &local)
            }
        }
    }

    func socketWritable() {}

    func close() {
        datagrams.close()
        streams.close()
    }
}
