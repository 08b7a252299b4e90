import Testing

@testable import Jail

@Suite struct JailPlanTests {
    @Test func `the listeners are the ports, the two of DNS, and two for each exposed port`() {
        let plan = JailPlan(ports: [80, 443], answersNames: true, exposed: [5432])
        #expect(plan.listeners.map(\.port) == [80, 443, 53, 53, 5432, 5432])
        #expect(
            plan.listeners.map(\.purpose) == [
                .host, .host, .datagramNames, .streamNames, .exposed(port: 5432, isIPv4: true),
                .exposed(port: 5432, isIPv4: false),
            ])
    }
}
