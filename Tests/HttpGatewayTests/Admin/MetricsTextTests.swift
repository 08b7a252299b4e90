import Testing

@testable import HttpGateway

@Suite struct MetricsTextTests {
    @Test func `a family has its help, its type and its samples`() {
        var metrics = MetricsText()
        metrics.beginFamily("a_total", .counter, "Of some kind.")
        metrics.add([("route", "x"), ("code", "2xx")], 3)
        metrics.add([], suffix: "_sum", 0.5)
        metrics.add("b", .gauge, "Alone.", 1)
        #expect(
            metrics.text == """
                # HELP a_total Of some kind.
                # TYPE a_total counter
                a_total{route="x",code="2xx"} 3
                a_total_sum 0.5
                # HELP b Alone.
                # TYPE b gauge
                b 1

                """)
    }

    @Test func `a name that holds quotes, backslashes or lines stays one label`() {
        var metrics = MetricsText()
        metrics.beginFamily("a", .gauge, "x")
        metrics.add([("route", "q\"u\\o\nte}")], 1)
        #expect(metrics.text.hasSuffix(#"a{route="q\"u\\o\nte}"} 1"# + "\n"))
    }
}
