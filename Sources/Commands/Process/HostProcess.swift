import Foundation
import GatewayConfiguration

/// What a command uses of its process, where that is not `sluice`: tests run commands with streams, environment variables
/// and signals of their own. Neither stream is a terminal.
package struct HostProcess: Sendable {
    /// `nil` in `sluice`.
    @TaskLocal static var current: HostProcess?

    let variables: [String: String]
    /// The next bytes of standard input; none at its end.
    let input: @Sendable () async -> [UInt8]
    /// Takes bytes of standard output. Returns `false` if its reader has closed it.
    let output: @Sendable ([UInt8]) -> Bool
    let errors: @Sendable (String) -> Void
    /// Calls the given closure, then or later, for each SIGINT.
    let onInterrupt: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Runs the gateway of `serve` or `bridge`.
    let gateway: @Sendable (Configuration) async -> Void

    package init(
        variables: [String: String] = [:], input: @escaping @Sendable () async -> [UInt8],
        output: @escaping @Sendable ([UInt8]) -> Bool, errors: @escaping @Sendable (String) -> Void,
        onInterrupt: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        gateway: @escaping @Sendable (Configuration) async -> Void
    ) {
        self.variables = variables
        self.input = input
        self.output = output
        self.errors = errors
        self.onInterrupt = onInterrupt
        self.gateway = gateway
    }

    /// An environment variable.
    static func variable(_ name: String) -> String? {
        (self.current?.variables ?? ProcessInfo.processInfo.environment)[name]
    }

    /// Runs the command that `arguments` name.
    /// - Returns: the exit code.
    package func run(_ arguments: [String]) async -> Int32 {
        await Self.$current.withValue(self) { await Sluice.run(arguments) }
    }
}
