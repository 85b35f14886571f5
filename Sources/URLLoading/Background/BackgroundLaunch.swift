import BackgroundTransfers
import Foundation
import Synchronization

/// How the daemon of background sessions starts a program for the events of its session. An extension that Foundation does not
/// have.
public struct BackgroundLaunchCommand: Sendable, Hashable {
    /// Absolute path.
    public var executable: URL
    public var arguments: [String]
    /// All variables of the program's environment. They are stored in a file that only the user can read.
    public var environment: [String: String]
    public var directory: URL

    public init(
        executable: URL, arguments: [String] = [],
        environment: [String: String] = ProcessInfo.processInfo.environment,
        directory: URL = URL(fileURLWithPath: FileManager.default.currentDirectoryPath, isDirectory: true)
    ) {
        self.executable = executable
        self.arguments = arguments
        self.environment = environment
        self.directory = directory
    }

    /// This program, with its arguments.
    public static var current: BackgroundLaunchCommand {
        let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return BackgroundLaunchCommand(
            executable: URL(fileURLWithPath: path), arguments: Array(CommandLine.arguments.dropFirst()))
    }
}

extension LaunchCommand {
    /// - Returns: `nil` if the executable has no absolute path.
    init?(_ command: BackgroundLaunchCommand?) {
        let command = command ?? .current
        guard command.executable.path.hasPrefix("/"), command.executable.path.utf8.count > 1 else { return nil }
        // Those of a started program are about that start alone.
        let environment = command.environment.filter { $0.key != Self.variable }
        self.init(
            executable: command.executable.path, arguments: command.arguments, environment: environment,
            directory: command.directory.path)
    }
}

/// Programs that the daemon started. An extension that Foundation does not have: on Apple's platforms the application's
/// delegate is called.
extension URLSession {
    /// Whether the daemon of background sessions started this program, and no person. Transfers that it creates are delayed:
    /// the first by 15 s, each further one by twice the delay before.
    public static var isLaunchedForBackgroundEvents: Bool { BackgroundLaunch.identifier != nil }

    /// Calls `handler` with the identifier of the session whose events the daemon started this program for. To be called when
    /// the program starts. The handler creates the session, whose delegate gets the messages.
    /// - Parameter handler: called once, before this returns; not called if a person started the program. It gets a
    ///   completion handler to call after `urlSessionDidFinishEvents(forBackgroundURLSession:)`: it ends the launch, so that
    ///   `isLaunchedForBackgroundEvents` becomes false and processes that this one starts do not inherit it.
    /// - Returns: whether the handler was called.
    @discardableResult
    public static func handleBackgroundEvents(
        _ handler: (_ identifier: String, _ completionHandler: @escaping @Sendable () -> Void) -> Void
    ) -> Bool {
        guard let identifier = BackgroundLaunch.take() else { return false }
        handler(identifier) { BackgroundLaunch.end() }
        return true
    }
}

/// The launch of this process.
enum BackgroundLaunch {
    private struct State {
        var identifier: String?
        var isTaken = false
    }
    private static let state = Mutex(
        State(identifier: ProcessInfo.processInfo.environment[LaunchCommand.variable].flatMap { $0.isEmpty ? nil : $0 })
    )

    static var identifier: String? { self.state.withLock { $0.identifier } }

    fileprivate static func take() -> String? {
        self.state.withLock { state in
            guard !state.isTaken else { return nil }
            state.isTaken = true
            return state.identifier
        }
    }

    fileprivate static func end() {
        self.state.withLock { $0.identifier = nil }
        unsetenv(LaunchCommand.variable)
    }
}
