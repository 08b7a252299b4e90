import HttpWare

/// Metrics in Prometheus' text format, version 0.0.4.
struct MetricsText {
    enum Kind: String { case counter, gauge, histogram }

    private(set) var text = ""
    private var family = ""

    /// Begins a family of samples.
    mutating func beginFamily(_ name: String, _ kind: Kind, _ help: String) {
        family = name
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n"
    }

    /// Adds a sample of the family. Values of labels are escaped.
    mutating func add(_ labels: [(String, String)], suffix: String = "", _ value: some MetricValue) {
        text += family + suffix
        if !labels.isEmpty {
            text += "{"
            for (index, label) in labels.enumerated() {
                if index > 0 { text += "," }
                text += label.0 + "=\""
                for scalar in label.1.unicodeScalars {
                    switch scalar {
                    case "\\": text += "\\\\"
                    case "\"": text += "\\\""
                    case "\n": text += "\\n"
                    default: text.unicodeScalars.append(scalar)
                    }
                }
                text += "\""
            }
            text += "}"
        }
        text += " \(value)\n"
    }

    /// Adds the samples of a histogram of the family.
    mutating func add(_ labels: [(String, String)], _ durations: DurationCounts) {
        var count = 0
        for (bound, number) in zip(durations.bounds, durations.counts) {
            count += number
            add(labels + [("le", "\(Double(bound) / 1e9)")], suffix: "_bucket", count)
        }
        add(labels + [("le", "+Inf")], suffix: "_bucket", durations.count)
        add(labels, suffix: "_sum", Double(durations.nanoseconds) / 1e9)
        add(labels, suffix: "_count", durations.count)
    }

    /// Begins a family of one sample, and ends it.
    mutating func add(_ name: String, _ kind: Kind, _ help: String, _ value: some MetricValue) {
        beginFamily(name, kind, help)
        add([], value)
    }
}

/// A number that a sample can have.
protocol MetricValue {}
extension Int: MetricValue {}
extension Double: MetricValue {}
