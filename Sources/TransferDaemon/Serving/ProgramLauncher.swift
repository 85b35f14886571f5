import BackgroundTransfers
import Foundation

/// Starts the programs of sessions that no running program has.
package enum ProgramLauncher {
    /// Starts the program in the background, without input and output, in a process group of its own.
    /// - Returns: whether it was started.
    package static func start(_ command: LaunchCommand, for session: String) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: command.executable)
        process.arguments = command.arguments
        process.environment = command.environment.merging([LaunchCommand.variable: session]) { _, new in new }
        process.currentDirectoryURL = URL(fileURLWithPath: command.directory, isDirectory: true)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        return (try? process.run()) != nil
    }
}
