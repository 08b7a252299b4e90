/// One step of a script: what happens at a time, with numbers that say how. A number that is not written is 0, the plainest case.
struct Step: Equatable {
    /// Milliseconds since the world began.
    var at: Int
    /// `request`, or a kind of fault.
    var kind: String
    /// The number by which the world's parts know the step.
    var number: Int
    private(set) var numbers: [(name: String, value: Int)] = []

    init(_ kind: String, _ number: Int, at: Int) {
        self.kind = kind
        self.number = number
        self.at = at
    }

    subscript(_ name: String) -> Int {
        get { numbers.first { $0.name == name }?.value ?? 0 }
        set {
            numbers.removeAll { $0.name == name }
            if newValue != 0 { numbers.append((name, newValue)) }
        }
    }

    var names: [String] { numbers.map(\.name) }

    static func == (left: Step, right: Step) -> Bool { left.text == right.text }

    /// As one line: `120 request 7 user=2 length=10`.
    var text: String { (["\(at) \(kind) \(number)"] + numbers.map { "\($0.name)=\($0.value)" }).joined(separator: " ") }

    /// Reads the line.
    init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count >= 3, let at = Int(words[0]), let number = Int(words[2]) else { return nil }
        self.init(String(words[1]), number, at: at)
        for word in words.dropFirst(3) {
            let parts = word.split(separator: "=")
            guard parts.count == 2, let value = Int(parts[1]) else { return nil }
            self[String(parts[0])] = value
        }
    }
}

/// The events of a world: the seed of its small decisions, and its steps.
struct Script: Equatable {
    var seed: UInt64
    /// Whether the network is even: all pieces arrive whole, and in the order of their sending.
    var isCalm = false
    var steps: [Step] = []

    /// As a text that `Simulate --script` repeats.
    var text: String {
        (["seed \(seed)\(isCalm ? " calm" : "")"] + steps.map(\.text)).joined(separator: "\n") + "\n"
    }

    init(seed: UInt64, steps: [Step]) {
        self.seed = seed
        self.steps = steps
    }

    /// Reads a text; `nil` if a line is not one of a script.
    init?(_ text: String) {
        let lines = text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        guard let first = lines.first?.split(separator: " "), first.count >= 2, first[0] == "seed",
            let seed = UInt64(first[1])
        else { return nil }
        self.seed = seed
        isCalm = first.contains("calm")
        for line in lines.dropFirst() {
            guard let step = Step(String(line)) else { return nil }
            steps.append(step)
        }
    }
}
