import GatewayConfig
import HttpWare
import Testing

@Suite struct ConfigurationReaderTests {
    @Test(arguments: ConfigurationCase.all)
    func `a configuration comes to what its case says`(example: ConfigurationCase) {
        let result = example.read()
        let errors = result.errors.map(\.description)
        let summary = result.configuration?.summary ?? ["no configuration"]
        let isError = { (line: String) in line.contains(": error: ") || line.contains(": warning: ") }
        #expect(errors == example.expected.filter(isError))
        for line in example.expected where !isError(line) { #expect(summary.contains(line), "\(summary)") }
    }

    @Test func `there are at least sixty cases`() {
        #expect(ConfigurationCase.all.count >= 60)
    }
}
