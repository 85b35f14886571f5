import Foundation

/// Starts the daemon where no service manager does.
package enum DaemonStarter {
    /// Environment variable with the path of the `sluice` executable.
    package static let variable = "SLUICE_TRANSFERD"

    /// Starts `sluice transferd` in the background. It ends itself if another one runs.
    /// - Parameter path: of the executable; `nil` looks at the variable and then at `PATH`.
    /// - Returns: `nil` if it was started; it may not listen yet.
    package static func start(_ path: String?, folders: TransferFolders) -> DaemonLinkFailure? {
        let environment = ProcessInfo.processInfo.environment
        guard let executable = path ?? environment[self.variable] ?? self.find("sluice", in: environment["PATH"]) else {
            return .cannotStart(
                "Background sessions need the program sluice: install it, put it into PATH, or set "
                    + "transferDaemonPath or the environment variable \(self.variable) to its path.")
        }
        guard FileManager.default.isExecutableFile(atPath: executable) else {
            return .cannotStart("Background sessions need the program sluice, but \(executable) cannot be executed.")
        }
        if let problem = TransferFolders.create(folders.state) {
            return .cannotStart("\(folders.state) \(problem).")
        }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = ["transferd"]
        // A program that the daemon started is no reason for the daemon's own programs to think so.
        process.environment = environment.filter { $0.key != LaunchCommand.variable }
        process.currentDirectoryURL = URL(fileURLWithPath: "/", isDirectory: true)
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = self.logFile(folders) ?? FileHandle.nullDevice
        do {
            try process.run()
            return nil
        } catch {
            return .cannotStart("\(executable) cannot be started: \(error.localizedDescription)")
        }
    }

    private static func find(_ name: String, in path: String?) -> String? {
        (path ?? "").split(separator: ":").lazy.map { "\($0)/\(name)" }
            .first { $0.hasPrefix("/") && FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Appends to the log, which is truncated above 1 MiB.
    private static func logFile(_ folders: TransferFolders) -> FileHandle? {
        let descriptor = open(folders.log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return nil }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        if fstat(descriptor, &status) == 0, status.st_size > 1 << 20 { try? handle.truncate(atOffset: 0) }
        return handle
    }
}
