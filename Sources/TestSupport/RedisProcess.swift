import Foundation

/// A real Redis server with a Unix socket in a folder of its own.
package final class RedisProcess: @unchecked Sendable {  // Used by one test.
    package let socketPath: String
    private let folder: URL
    private var process = Process()

    /// - Throws: if redis-server is not installed.
    package init() throws {
        self.folder = FileManager.default.temporaryDirectory.appending(path: "redis-\(UUID().uuidString.prefix(8))")
        self.socketPath = self.folder.appending(path: "redis.sock").path
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        try self.start()
    }

    package var address: String { "unix://\(self.socketPath)" }

    /// Starts the server, empty. Clients connect as soon as they can.
    package func start() throws {
        self.process = Process()
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = [
            "redis-server", "--port", "0", "--unixsocket", self.socketPath, "--save", "", "--appendonly", "no",
            "--dir", self.folder.path,
        ]
        self.process.standardOutput = FileHandle.nullDevice
        self.process.standardError = FileHandle.nullDevice
        try self.process.run()
    }

    package func kill() {
        _ = Foundation.kill(self.process.processIdentifier, SIGKILL)
        self.process.waitUntilExit()
    }

    package func pause() { _ = Foundation.kill(self.process.processIdentifier, SIGSTOP) }
    package func resume() { _ = Foundation.kill(self.process.processIdentifier, SIGCONT) }

    deinit {
        self.kill()
        try? FileManager.default.removeItem(at: self.folder)
    }
}
