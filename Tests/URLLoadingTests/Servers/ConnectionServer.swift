import Foundation
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// A server within a test that leaves each of its connections to a script.
final class ConnectionServer: Sendable {
    typealias Script = @Sendable (StreamTask) async throws -> Void

    private let loops: LoopGroup
    let isSecure: Bool
    private let door: Acceptor
    let address: SocketAddress

    /// For WebSocket tasks: has the TLS of the run's variant.
    static func webSockets(_ script: @escaping Script) async throws -> ConnectionServer {
        try await ConnectionServer(tls: Certificates.currentServer(), script)
    }

    /// - Parameters:
    ///   - tls: begun before the script.
    ///   - script: runs for each connection; an error resets the connection, a return leaves it open.
    init(
        at address: SocketAddress = .ipv4(address: 0x7f00_0001, port: 0), tls: TLSContext? = nil,
        _ script: @escaping Script
    ) async throws {
        let loops = try LoopGroup(count: 1)
        let door = Acceptor(script, tls)
        self.isSecure = tls != nil
        let loop = loops.loops[0]
        self.address = try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                continuation.resume(
                    with: Result {
                        let listener = try SocketListener(address, on: loop, owner: door)
                        door.listener = listener
                        return listener.address
                    })
            }
        }
        self.loops = loops
        self.door = door
    }

    deinit {
        let (loops, door) = (self.loops, self.door)
        loops.loops[0].execute {
            door.listener?.close()
            for task in door.tasks { task.cancelOnLoop() }
            // The remaining output is sent at the end of this turn.
            loops.stop()
        }
    }

    var port: Int { self.address.port.map(Int.init) ?? 0 }

    /// Of its WebSockets.
    var scheme: String { self.isSecure ? "wss" : "ws" }

    func url(_ path: String = "/", scheme: String? = nil) -> URL {
        URL(string: "\(scheme ?? self.scheme)://127.0.0.1:\(self.port)\(path)") ?? URL(filePath: "/")
    }

    /// Belongs to the loop.
    private final class Acceptor: SocketListenerOwner, @unchecked Sendable {
        var listener: SocketListener?
        private(set) var tasks: [StreamTask] = []
        private let script: Script
        private let tls: TLSContext?

        init(_ script: @escaping Script, _ tls: TLSContext?) {
            self.script = script
            self.tls = tls
        }

        func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
            guard
                let connection = try? SocketConnection(
                    adopting: socket.descriptor, peer: socket.peer, on: listener.loop, paused: true)
            else { return }
            let (task, script, tls) = (StreamTask(adopting: connection), self.script, self.tls)
            self.tasks.append(task)
            Task {
                do {
                    if let tls { try await task.startSecureConnection(SecureSettings(context: tls)) }
                    try await script(task)
                } catch { task.cancel() }
            }
        }

        func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
        func acceptingResumed(by listener: SocketListener) {}
    }
}
