public import GatewayConfig
import HttpCaching
import HttpWare

/// Runs the cases of a file against a configuration, without a network and without waiting: time is a clock that the cases move, random
/// values follow from a seed, and every server is played by the case.
public struct CaseRunner: Sendable {
    private let read: @Sendable () -> ConfigurationReader.Result

    /// Makes a runner. `read` reads the configuration, with `StandInStores.all`; each case gets one of its own, so that no state passes from
    /// one case to the next.
    public init(reading read: @escaping @Sendable () -> ConfigurationReader.Result) { self.read = read }

    /// The result of reading the configuration, as the cases read it.
    public func configuration() -> ConfigurationReader.Result { OutputGate.whileClosed { read() } }

    /// The parts of the configuration that a run replaces, as notes.
    public static func notes(_ configuration: GatewayConfiguration) -> [String] {
        configuration.stores.filter { $0.store.definition.kindName != MemoryKind.name }.map {
            "the store \($0.name) (\($0.store.definition.kindName)) is in memory while cases run"
        }
    }

    /// Runs a case. Call this on a thread that no loop runs on; it takes as long as the wares compute.
    public func run(_ one: FileCase) -> CaseOutcome {
        OutputGate.whileClosed {
            ReplaceableRandom.following(seed: UInt64(one.seed)) { outcome(of: one) }
        }
    }

    private func outcome(of one: FileCase) -> CaseOutcome {
        var outcome = CaseOutcome(name: one.name, location: one.location)
        let result = read()
        guard let configuration = result.configuration else {
            // The first reading had no errors: the files have changed since.
            outcome.differences = result.errors.map { CaseDifference(at: $0.location, $0.message) }
            return outcome
        }
        do {
            let stage = try CaseStage(configuration, one)
            defer { stage.close() }
            for step in one.steps {
                do {
                    guard let (result, problems) = try stage.run(step, of: one) else { continue }
                    outcome.differences += problems + CaseComparison.differences(step.expect, result)
                    if !outcome.differences.isEmpty, outcome.decisions.isEmpty {
                        outcome.decisions = (result.wares ?? []).map { "\($0.label) \($0.text)" }
                    }
                } catch let stuck as CaseStage.Stuck {
                    outcome.differences.append(
                        CaseDifference(at: step.request?.location ?? one.location, stuck.reason))
                    break
                }
            }
        } catch {
            outcome.differences.append(CaseDifference(at: one.location, "\(error)"))
        }
        return outcome
    }
}
