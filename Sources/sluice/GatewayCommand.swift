import ArgumentParser

/// A command that runs a gateway until a signal ends it.
protocol GatewayCommand: AsyncParsableCommand {}
