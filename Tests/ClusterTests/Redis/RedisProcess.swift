import Foundation

/// A real Redis server with a Unix socket in a folder of its own.
final class RedisProcess: @unchecked Sendable {  // Used by one test.
    let socketPath: String
    private let folder: URL
    private var process = Process()

    /// - Throws: if redis-server is not installed.
    init() throws {
        self.folder = FileManager.default.temporaryDirectory.appending(path: "redis-\(UUID().uuidString.prefix(8))")
        self.socketPath = self.folder.appending(path: "redis.sock").path
        try FileManager.default.createDirectory(at: self.folder, withIntermediateDirectories: true)
        try self.start()
    }

    var address: String { "unix://\(self.socketPath)" }

    /// Starts the server, empty. Clients connect as soon as they can.
    func start() throws {
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

    func kill() {
        _ = Foundation.kill(self.process.processIdentifier, SIGKILL)
        self.process.waitUntilExit()
    }

    func pause() { _ = Foundation.kill(self.process.processIdentifier, SIGSTOP) }
    func resume() { _ = Foundation.kill(self.process.processIdentifier, SIGCONT) }

    deinit {
        self.kill()
        try? FileManager.default.removeItem(at: self.folder)
    }
}
