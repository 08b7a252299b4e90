import Testing

@testable import HttpWare

@Suite struct RequestAllowanceTests {
    @Test func `a GOAWAY that refuses requests says how many a connection carries`() {
        var allowance = RequestAllowance()
        #expect(allowance.most(at: 0) == .max)
        allowance.ended(after: 5, refusing: 0, at: 0)
        #expect(allowance.most(at: 0) == .max)
        allowance.ended(after: 5, refusing: 3, at: 0)
        #expect(allowance.most(at: 0) == 5)
        allowance.ended(after: 1, refusing: 1, at: 0)
        #expect(allowance.most(at: 0) == 1)
    }

    @Test func `an origin server that takes no request at all has another reason`() {
        var allowance = RequestAllowance()
        allowance.ended(after: 0, refusing: 9, at: 0)
        #expect(allowance.most(at: 0) == .max)
    }

    @Test func `the number doubles when a connection outlives it, up to no limit`() {
        var allowance = RequestAllowance()
        allowance.outlived(at: 0)
        #expect(allowance.most(at: 0) == .max)
        allowance.ended(after: 3, refusing: 1, at: 0)
        allowance.outlived(at: 0)
        #expect(allowance.most(at: 0) == 6)
        for _ in 0..<40 { allowance.outlived(at: 0) }
        #expect(allowance.most(at: 0) == .max)
        allowance.ended(after: .max / 2, refusing: 1, at: 0)
        #expect(allowance.most(at: 0) == .max)
    }

    @Test func `the number is forgotten a minute after it was learned or doubled`() {
        var allowance = RequestAllowance()
        allowance.ended(after: 3, refusing: 1, at: 100)
        #expect(allowance.most(at: 100 + RequestAllowance.lifetime - 1) == 3)
        allowance.outlived(at: 100 + RequestAllowance.lifetime - 1)
        #expect(allowance.most(at: 100 + RequestAllowance.lifetime) == 6)
        #expect(allowance.most(at: 100 + 2 * RequestAllowance.lifetime) == .max)
    }
}
