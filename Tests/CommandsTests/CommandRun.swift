import Commands
import ControlAPI
import Foundation
import GatewayConfiguration
import Synchronization

/// A command run in this process, with its exit code and output.
struct CommandRun: Sendable {
    let code: Int32
    /// Standard output.
    let bytes: [UInt8]
    /// Standard error.
    let errors: String
    /// Configurations of the gateways that the command would run.
    let gateways: [Configuration]

    var output: String { String(decoding: self.bytes, as: UTF8.self) }

    var lines: [String] {
        self.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
    }

    /// The lines of standard output, each a JSON document.
    var documents: [JSONValue] {
        get throws { try self.lines.map { try JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) } }
    }

    /// - Parameters:
    ///   - input: pieces of standard input, which then ends.
    ///   - variables: environment variables.
    static func of(
        _ arguments: String..., input: [String] = [], variables: [String: String] = [:]
    ) async -> CommandRun {
        await CommandHost(input: input.map { Array($0.utf8) }, variables: variables).run(arguments)
    }
}

/// The process of a command: standard input is a list of pieces, output is kept.
final class CommandHost: Sendable {
    private struct State {
        var input: [[UInt8]]
        var output: [UInt8] = []
        var errors = ""
        var gateways: [Configuration] = []
        var interrupt: (@Sendable () -> Void)?
        var isInterrupted = false
    }

    private let state: Mutex<State>
    private let variables: [String: String]
    private let endsInput: Bool
    private let acceptsOutput: Bool

    /// - Parameters:
    ///   - endsInput: `false` keeps standard input open after `input`.
    ///   - acceptsOutput: `false` if the reader of standard output has closed it.
    init(
        input: [[UInt8]] = [], endsInput: Bool = true, acceptsOutput: Bool = true, variables: [String: String] = [:]
    ) {
        self.state = Mutex(State(input: input))
        self.endsInput = endsInput
        self.acceptsOutput = acceptsOutput
        self.variables = variables
    }

    func run(_ arguments: [String]) async -> CommandRun {
        let code = await HostProcess(
            variables: self.variables, input: { await self.read() },
            output: { bytes in
                self.state.withLock { $0.output += bytes }
                return self.acceptsOutput
            },
            errors: { text in self.state.withLock { $0.errors += text } },
            onInterrupt: { action in
                let isInterrupted = self.state.withLock { state in
                    state.interrupt = action
                    return state.isInterrupted
                }
                if isInterrupted { action() }
            },
            gateway: { configuration in self.state.withLock { $0.gateways.append(configuration) } }
        ).run(arguments)
        return self.state.withLock {
            CommandRun(code: code, bytes: $0.output, errors: $0.errors, gateways: $0.gateways)
        }
    }

    private func read() async -> [UInt8] {
        if let bytes = self.state.withLock({ $0.input.isEmpty ? nil : $0.input.removeFirst() }) { return bytes }
        if !self.endsInput { try? await Task.sleep(for: .seconds(600)) }
        return []
    }

    /// Standard error, so far.
    var errors: String { self.state.withLock(\.errors) }

    /// Delivers SIGINT, now or when the command starts handling it.
    func interrupt() {
        let action = self.state.withLock { state in
            state.isInterrupted = true
            return state.interrupt
        }
        action?()
    }
}
