import Foundation
import SessionTasks
import StreamTransport
import Synchronization

/// A server within a test that leaves each of its connections to a script.
final class ConnectionServer: Sendable {
    typealias Script = @Sendable (StreamTask) async throws -> Void

    private let loops: LoopGroup
    private let door: Acceptor
    let address: SocketAddress

    /// - Parameters:
    ///   - script: runs for each connection; an error resets the connection, a return leaves it open.
    init(at address: SocketAddress = .ipv4(address: 0x7f00_0001, port: 0), _ script: @escaping Script) async throws {
        let loops = try LoopGroup(count: 1)
        let door = Acceptor(script)
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

    func url(_ path: String = "/", scheme: String = "ws") -> URL {
        URL(string: "\(scheme)://127.0.0.1:\(self.port)\(path)") ?? URL(filePath: "/")
    }

    /// Belongs to the loop.
    private final class Acceptor: SocketListenerOwner, @unchecked Sendable {
        var listener: SocketListener?
        private(set) var tasks: [StreamTask] = []
        private let script: Script

        init(_ script: @escaping Script) { self.script = script }

        func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
            guard
                let connection = try? SocketConnection(
                    adopting: socket.descriptor, peer: socket.peer, on: listener.loop, paused: true)
            else { return }
            let (task, script) = (StreamTask(adopting: connection), self.script)
            self.tasks.append(task)
            Task {
                do { try await script(task) } catch { task.cancel() }
            }
        }

        func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
        func acceptingResumed(by listener: SocketListener) {}
    }
}
