import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct EventLoopTests {
}
