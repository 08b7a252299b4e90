import HttpWare
import Testing

@testable import Credentials

@Suite struct IssuedTokenTests {
    @Test func `a token does not print itself`() {
        let token = IssuedToken(number: 1, value: Secret("s3cret-token"), expires: nil, renewal: nil)
        #expect(!"\(token) \(token.value) \(String(reflecting: token.value))".contains("s3cret"))
    }
}
