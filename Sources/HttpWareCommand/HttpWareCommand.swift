import ArgumentParser

@main struct HttpWareCommand: ParsableCommand {
    func run() {}
}
